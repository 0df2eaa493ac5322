package client

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "repertoire.dev/client/repertoirev1"
)

// Watch is the log of what happens to skills, from a place on.
type Watch struct {
	registry pb.RegistryClient
	request  *pb.WatchRequest
	ctx      context.Context
	cancel   context.CancelFunc
	timeout  time.Duration
	// The connection that there is, and what ends it.
	stream pb.Registry_WatchClient
	end    context.CancelFunc
	// An event that came where none was due.
	early *pb.WatchResponse
	token atomic.Value
}

// Watch tells what happens to skills from now on, without gaps and without repeats, also
// when the connection breaks or the server starts again meanwhile.
//
// request says of which skills and from where; nil: of all, from now. What happens once this
// has returned is told. Close the watch, or end its context, when you are done.
func (c *Client) Watch(ctx context.Context, request *pb.WatchRequest) (*Watch, error) {
	whole := &pb.WatchRequest{}
	if request != nil {
		whole = proto.CloneOf(request)
	}
	// These would end it.
	whole.MaxEvents, whole.MaxWaitSeconds = 0, 0
	ctx, cancel := context.WithCancel(ctx)
	w := &Watch{registry: c.Registry, request: whole, ctx: ctx, cancel: cancel, timeout: c.settings.timeout}
	w.token.Store(whole.ResumeToken)
	until := time.Now().Add(c.settings.timeout)
	for attempt := 0; ; attempt++ {
		err := w.open()
		if err == nil {
			return w, nil
		}
		told := (*Error)(nil)
		errors.As(err, &told)
		wait := pause(attempt, told.RetryAfter)
		if attempt+1 == attempts || !isAnInterruption(told) || time.Until(until) <= wait || sleep(ctx, wait) != nil {
			cancel()
			return nil, err
		}
	}
}

// open begins where the last answer left off. The first answer has the place of the watch
// and no event: from then on nothing is missed.
func (w *Watch) open() error {
	ctx, cancel := context.WithCancel(w.ctx)
	// The stream is endless, its beginning is not.
	patience := time.AfterFunc(w.timeout, cancel)
	stream, err := w.registry.Watch(ctx, w.request)
	if err != nil {
		cancel()
		return err
	}
	response, err := stream.Recv()
	if !patience.Stop() || err != nil {
		cancel()
		return ended(cmp.Or(err, io.EOF))
	}
	w.end = cancel
	w.stream = stream
	if response.Event != nil {
		w.early = response
		return nil
	}
	w.went(response)
	return nil
}

func (w *Watch) receive() (*pb.WatchResponse, error) {
	if w.stream == nil {
		if err := w.open(); err != nil {
			return nil, err
		}
	}
	if early := w.early; early != nil {
		w.early = nil
		return early, nil
	}
	response, err := w.stream.Recv()
	return response, ended(err)
}

func (w *Watch) went(response *pb.WatchResponse) {
	w.request.ResumeToken = response.ResumeToken
	w.token.Store(response.ResumeToken)
}

// Events are what happens, one after the other, until the watch is closed or the server says
// that it cannot go on: RESUME_TOKEN_EXPIRED where it was away for longer than the log
// reaches back. Then list the skills again, and watch from the token of the list.
func (w *Watch) Events() iter.Seq2[*pb.Event, error] {
	return func(yield func(*pb.Event, error) bool) {
		for {
			event, err := w.next()
			if w.ctx.Err() != nil {
				return
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// next is the next event, over as many connections as it takes.
func (w *Watch) next() (*pb.Event, error) {
	for failures := 0; ; {
		response, err := w.receive()
		if err == nil {
			failures = 0
			w.went(response)
			if response.Event != nil {
				return response.Event, nil
			}
			continue
		}
		if w.stream != nil {
			w.end()
			w.stream = nil
		}
		told := (*Error)(nil)
		if !errors.As(err, &told) || !isAnInterruption(told) {
			return nil, err
		}
		if err := sleep(w.ctx, pause(failures, told.RetryAfter)); err != nil {
			return nil, err
		}
		failures++
	}
}

// ResumeToken is where to go on after the last event: as WatchRequest.ResumeToken it lets
// another process do that.
func (w *Watch) ResumeToken() string { return w.token.Load().(string) }

// Close ends the watch, from any goroutine.
func (w *Watch) Close() { w.cancel() }

// ended: no watch ends by itself, so a server that ends one goes away.
func ended(err error) error {
	if err == io.EOF {
		err = status.Error(codes.Unavailable, "The server ended the watch")
	}
	return refusal(err)
}

// isAnInterruption: the same request may succeed later. What the server names is final
// unless its code says that it is not; without a name it came from the connection.
func isAnInterruption(err *Error) bool {
	switch err.Status() {
	case codes.Unavailable, codes.ResourceExhausted, codes.Aborted, codes.DeadlineExceeded:
		return true
	case codes.Internal, codes.Unknown, codes.Canceled:
		return !err.named
	}
	return false
}
