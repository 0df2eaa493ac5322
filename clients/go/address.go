package client

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	defaultAddress = "127.0.0.1:50051"
	defaultTimeout = 30 * time.Second
)

// The forms that HTTP/2 lets names and values of headers have.
var (
	headerName  = regexp.MustCompile(`^[0-9a-z_.-]+$`)
	headerValue = regexp.MustCompile(`^[\x20-\x7e]*$`)
)

// Headers that the protocol itself needs.
var reserved = []string{"host", "te", "content-type", "connection", "transfer-encoding", "user-agent"}

type settings struct {
	token, ca string
	headers   []string
	timeout   time.Duration
	inClear   bool
	dial      []grpc.DialOption

	target   string
	security credentials.TransportCredentials
}

func newSettings(address string, options []Option) (*settings, error) {
	s := &settings{
		token:   os.Getenv("REPERTOIRE_TOKEN"),
		ca:      os.Getenv("REPERTOIRE_CA"),
		timeout: defaultTimeout,
	}
	for _, option := range options {
		option(s)
	}
	if address == "" {
		address = os.Getenv("REPERTOIRE_SERVER")
	}
	if address == "" {
		address = defaultAddress
	}
	if s.timeout <= 0 {
		return nil, invalid("the timeout of calls must be more than nothing")
	}
	hasToken, err := s.takeHeaders()
	if err != nil {
		return nil, err
	}
	server, err := parse(address)
	if err != nil {
		return nil, err
	}
	if server.Scheme == "https" {
		s.security, err = s.encryption()
		if err != nil {
			return nil, err
		}
	} else {
		if hasToken && !isLocal(server.Hostname()) && !s.inClear {
			return nil, invalid("refusing to send a token over plain HTTP to "+address,
				"Write https:// where the server has TLS")
		}
		s.security = insecure.NewCredentials()
	}
	s.target = net.JoinHostPort(server.Hostname(), server.Port())
	return s, nil
}

// takeHeaders brings the headers into the form that gRPC wants, and says whether one of them
// is a token.
func (s *settings) takeHeaders() (bool, error) {
	hasToken := s.token != ""
	for at := 0; at < len(s.headers); at += 2 {
		name := strings.ToLower(s.headers[at])
		s.headers[at] = name
		if !headerName.MatchString(name) || !headerValue.MatchString(s.headers[at+1]) {
			return false, invalid("the header `" + name + "` has what no header may have")
		}
		if slices.Contains(reserved, name) || strings.HasPrefix(name, "grpc-") {
			return false, invalid("`" + name + "` is for the protocol to set")
		}
		hasToken = hasToken || name == "authorization"
	}
	if s.token != "" {
		if !headerValue.MatchString(s.token) {
			return false, invalid("the token has what no token may have")
		}
		s.headers = append(s.headers, "authorization", "Bearer "+s.token)
	}
	return hasToken, nil
}

func parse(address string) (*url.URL, error) {
	form := "Write it as https://HOST, http://HOST:PORT, or HOST:PORT"
	if strings.Contains(address, "@") {
		// It is not repeated: a log may have it.
		return nil, invalid("the address of the server has a user or a password",
			"A token goes into REPERTOIRE_TOKEN or WithToken", form)
	}
	whole := address
	if !strings.Contains(address, "://") {
		whole = "http://" + address
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, invalid("`"+address+"` is not the address of a server: it has no port", form)
		}
	}
	server, err := url.Parse(whole)
	if err != nil || server.Hostname() == "" {
		return nil, invalid("`"+address+"` is not the address of a server", form)
	}
	if server.Scheme != "http" && server.Scheme != "https" {
		return nil, invalid("`"+address+"` is not the address of a server: it begins with neither http:// nor https://", form)
	}
	if strings.Trim(server.Path, "/") != "" || server.RawQuery != "" || server.Fragment != "" {
		return nil, invalid("`"+address+"` is not the address of a server: gRPC has no paths below a host", form)
	}
	if server.Port() == "" {
		port := map[string]string{"http": "80", "https": "443"}[server.Scheme]
		server.Host = net.JoinHostPort(server.Hostname(), port)
	}
	return server, nil
}

// isLocal: what is sent there stays on this machine.
func isLocal(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

func (s *settings) encryption() (credentials.TransportCredentials, error) {
	trusted, err := x509.SystemCertPool()
	if err != nil {
		trusted = x509.NewCertPool()
	}
	if s.ca != "" {
		pem, err := os.ReadFile(s.ca)
		if err != nil {
			return nil, local("LOCAL_FILE_FAILED", codes.FailedPrecondition, err.Error(), err)
		}
		if !trusted.AppendCertsFromPEM(pem) {
			return nil, invalid(s.ca + " has no certificate in PEM")
		}
	}
	return credentials.NewTLS(&tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}), nil
}
