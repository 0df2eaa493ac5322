package client

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

const (
	attempts   = 7
	firstPause = 250 * time.Millisecond
	longPause  = 5 * time.Second
)

// pause is the time before another attempt, from 0: with full jitter, so that callers that
// failed together do not come back together, and not before the server wants it.
func pause(attempt int, after time.Duration) time.Duration {
	top := min(longPause, firstPause<<min(attempt, 8))
	return after + rand.N(top)
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isRepeatable: calling twice does what calling once does. The contract says so of each method.
func isRepeatable(method string) bool {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return false
	}
	options, known := found.Options().(*descriptorpb.MethodOptions)
	return known && options.GetIdempotencyLevel() != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
}

// isWorthARetry: nothing was begun, or it may be done again, and a later call may succeed.
func isWorthARetry(err *Error, method string) bool {
	switch err.Code {
	case "OVERLOADED", "TOOL_QUOTA":
		// Refused before anything began. A status without a delay is of this side: a message
		// that is too large stays so.
		return err.Status() == codes.ResourceExhausted && (err.RetryAfter > 0 || err.named)
	case "TOOL_UNAVAILABLE":
		// The tool may have done its work.
		return err.RetryAfter > 0 && isRepeatable(method)
	}
	return (err.Status() == codes.Unavailable || err.Status() == codes.Aborted) && isRepeatable(method)
}

// unary gives every call a deadline and the client's headers, and repeats it while that is
// safe. The policy that gRPC has for this knows neither codes nor RetryInfo.
func (s *settings) unary(
	ctx context.Context, method string, request, response any, connection *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	ctx = s.withHeaders(ctx)
	until, _ := ctx.Deadline()
	for attempt := 0; ; attempt++ {
		var trailer metadata.MD
		all := append(options[:len(options):len(options)], grpc.Trailer(&trailer))
		err := refusal(invoke(ctx, method, request, response, connection, all...))
		told := (*Error)(nil)
		if err == nil || !errors.As(err, &told) {
			return err
		}
		if told.RetryAfter == 0 {
			told.RetryAfter = retryAfter(trailer)
		}
		wait := pause(attempt, told.RetryAfter)
		if attempt+1 == attempts || !isWorthARetry(told, method) || time.Until(until) <= wait {
			return err
		}
		if sleep(ctx, wait) != nil {
			return err
		}
	}
}

// retryAfter is what a proxy says that speaks HTTP alone.
func retryAfter(trailer metadata.MD) time.Duration {
	for _, value := range trailer.Get("retry-after") {
		if seconds, err := strconv.ParseUint(value, 10, 16); err == nil {
			return time.Duration(seconds) * time.Second
		}
	}
	return 0
}

// stream gives a stream the headers. It may be endless, and cannot be repeated from outside.
func (s *settings) stream(
	ctx context.Context, description *grpc.StreamDesc, connection *grpc.ClientConn, method string,
	open grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := open(s.withHeaders(ctx), description, connection, method, options...)
	if err != nil {
		return nil, refusal(err)
	}
	return toldStream{stream}, nil
}

// toldStream fails as calls do.
type toldStream struct{ grpc.ClientStream }

func (s toldStream) RecvMsg(message any) error {
	if err := s.ClientStream.RecvMsg(message); err != io.EOF {
		return refusal(err)
	}
	return io.EOF
}

func (s *settings) withHeaders(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, s.headers...)
}
