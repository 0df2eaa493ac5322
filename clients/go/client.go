// Package client talks to a Repertoire, the server of skills for agents.
//
// It does four things that everybody does, on top of the generated stubs, which stay
// within reach: publish a folder, search, load a skill and call its tools, watch what
// changes. Messages of the contract are in repertoire.dev/client/repertoirev1.
//
// Every call has a deadline, is repeated while that is safe, and fails with an [*Error].
package client

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	pb "repertoire.dev/client/repertoirev1"
)

// maxMessage is above what the server sends: 20 MiB.
const maxMessage = 24 << 20

// Client is a connection to a server. Goroutines may share it.
type Client struct {
	// The generated stubs, with the client's headers, deadline, retries and errors.
	Registry    pb.RegistryClient
	Lookup      pb.LookupClient
	Composition pb.CompositionClient
	Learning    pb.LearningClient
	ToolHost    pb.ToolHostClient

	connection *grpc.ClientConn
	settings   *settings
}

// Option is a setting of a connection.
type Option func(*settings)

// WithToken sends a token with every call. Without this it is that of REPERTOIRE_TOKEN.
func WithToken(token string) Option { return func(s *settings) { s.token = token } }

// WithCA trusts the authorities of a file (PEM) beside the system's. Without this it is
// that of REPERTOIRE_CA.
func WithCA(file string) Option { return func(s *settings) { s.ca = file } }

// WithHeader sends a header with every call.
func WithHeader(name, value string) Option {
	return func(s *settings) { s.headers = append(s.headers, name, value) }
}

// WithTimeout is how long a call may take that has no deadline of its own, all its attempts
// together; 30 seconds without this. Streams have none.
func WithTimeout(timeout time.Duration) Option { return func(s *settings) { s.timeout = timeout } }

// WithTokenInClear sends the token without TLS to another machine, where all on the way
// can read it: for a network that encrypts by itself.
func WithTokenInClear() Option { return func(s *settings) { s.inClear = true } }

// WithDialOptions adds what else gRPC can do, such as tracing.
func WithDialOptions(options ...grpc.DialOption) Option {
	return func(s *settings) { s.dial = append(s.dial, options...) }
}

// Connect prepares a connection to https://HOST, http://HOST:PORT, or HOST:PORT, which is in
// clear as http is. An empty address is that of REPERTOIRE_SERVER, else 127.0.0.1:50051.
//
// The first call connects; close the client when you are done.
func Connect(address string, options ...Option) (*Client, error) {
	settings, err := newSettings(address, options)
	if err != nil {
		return nil, err
	}
	dial := append([]grpc.DialOption{
		grpc.WithTransportCredentials(settings.security),
		grpc.WithUnaryInterceptor(settings.unary),
		grpc.WithStreamInterceptor(settings.stream),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		// A server that starts again is tried soon.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: longPause},
			MinConnectTimeout: 5 * time.Second,
		}),
		// A stream must notice that the other side is gone without a word.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: time.Minute, Timeout: 20 * time.Second}),
	}, settings.dial...)
	connection, err := grpc.NewClient(settings.target, dial...)
	if err != nil {
		return nil, invalid(err.Error())
	}
	return &Client{
		Registry:    pb.NewRegistryClient(connection),
		Lookup:      pb.NewLookupClient(connection),
		Composition: pb.NewCompositionClient(connection),
		Learning:    pb.NewLearningClient(connection),
		ToolHost:    pb.NewToolHostClient(connection),
		connection:  connection,
		settings:    settings,
	}, nil
}

// Connection is what the stubs call through, for stubs of your own.
func (c *Client) Connection() *grpc.ClientConn { return c.connection }

// Close ends the connection, and the calls that are in work.
func (c *Client) Close() error { return c.connection.Close() }

// Search finds skills by words, a name, or a sentence about a task, the best first; limit of
// them at most, 0: 10. Lookup.Search has filters.
func (c *Client) Search(ctx context.Context, query string, limit int) ([]*pb.SkillSummary, error) {
	request := &pb.SearchRequest{Query: query}
	if limit != 0 {
		most := int32(limit)
		request.Limit = &most
	}
	response, err := c.Lookup.Search(ctx, request)
	return response.GetResults(), err
}

// Must is what a call gave that may not fail: for scripts and examples, which end otherwise.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
