package client

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What errors.Is finds in an [Error]: the few kinds that a program acts on differently.
// For all else there is the code.
var (
	// ErrNotFound: there is no such skill, version, session, tool.
	ErrNotFound = errors.New("not found")
	// ErrRefused: what was asked is wrong, and would be the next time.
	ErrRefused = errors.New("refused")
	// ErrConflict: it is at odds with what there is; read that again.
	ErrConflict = errors.New("conflict")
	// ErrDenied: this caller may not do it.
	ErrDenied = errors.New("denied")
	// ErrUnavailable: not now; a later call may succeed.
	ErrUnavailable = errors.New("unavailable")
)

// Error is a refusal. Every failed call has one, those of the generated stubs too.
type Error struct {
	// Code is stable, such as SKILL_NOT_FOUND. Act on it, never on the message.
	Code string
	// Message says what was refused and why.
	Message string
	// Next is what to do, most useful first.
	Next []string
	// Violations are the fields that are wrong, or the files and lines of a skill.
	Violations []Violation
	// Facts are what the server adds, such as skill_id.
	Facts map[string]string
	// RetryAfter is how long to wait before another call; 0: nothing was said.
	RetryAfter time.Duration

	status *status.Status
	// The server gave it its code.
	named bool
	// Where no server said it.
	cause error
}

// Violation is one thing that is wrong.
type Violation struct{ Field, Message string }

// Error has the code, the message, and what to do next.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString(e.Code + ": " + e.Message)
	for _, violation := range e.Violations {
		if violation.Message != e.Message {
			text.WriteString("\n" + violation.Field + ": " + violation.Message)
		}
	}
	for _, step := range e.Next {
		text.WriteString("\nNext: " + step)
	}
	return text.String()
}

// Status is the code of gRPC.
func (e *Error) Status() codes.Code { return e.status.Code() }

// GRPCStatus is the whole status, for package status.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// Unwrap is what lies below, such as the error of a file or of a context.
func (e *Error) Unwrap() error { return e.cause }

// Is says what kind of an error it is.
func (e *Error) Is(target error) bool { return target == e.kind() }

// conflicts are at odds with what there is; other states forbid a call whatever there is.
var conflicts = map[string]bool{
	"CONFLICT_DETECTED": true, "IDEMPOTENCY_KEY_REUSED": true, "SKILL_ALREADY_INSTALLED": true, "SOURCE_EXISTS": true,
	"SUBMISSION_REVIEWED": true, "SYNC_IN_PROGRESS": true, "VERSION_CONFLICT": true, "WRITE_CONTENTION": true,
}

func (e *Error) kind() error {
	if conflicts[e.Code] {
		return ErrConflict
	}
	switch e.Status() {
	case codes.NotFound:
		return ErrNotFound
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return ErrRefused
	case codes.Aborted, codes.AlreadyExists:
		return ErrConflict
	case codes.PermissionDenied, codes.Unauthenticated:
		return ErrDenied
	case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded:
		return ErrUnavailable
	}
	return nil
}

// refusal reads the status of a failed call; nil stays nil, an Error stays as it is.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	if known := (*Error)(nil); errors.As(err, &known) {
		return err
	}
	status := status.Convert(err)
	told := &Error{Message: status.Message(), status: status, cause: cause(status.Code())}
	for _, detail := range status.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			told.Code, told.Facts, told.named = detail.Reason, detail.Metadata, true
		case *errdetails.Help:
			for _, link := range detail.Links {
				told.Next = append(told.Next, link.Description)
			}
		case *errdetails.BadRequest:
			for _, violation := range detail.FieldViolations {
				told.Violations = append(told.Violations, Violation{violation.Field, violation.Description})
			}
		case *errdetails.RetryInfo:
			told.RetryAfter = detail.RetryDelay.AsDuration()
		}
	}
	if told.Code == "" {
		told.Code = unnamed(status.Code())
	}
	if told.Code == "SERVER_UNREACHABLE" && len(told.Next) == 0 {
		told.Next = []string{"Check that the server is running and that its address is right"}
	}
	return told
}

// cause lets errors.Is find what Go calls a deadline that passed.
func cause(code codes.Code) error {
	switch code {
	case codes.Canceled:
		return context.Canceled
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	}
	return nil
}

// unnamed is the code of a status that came without one: of a proxy, or of this side.
func unnamed(code codes.Code) string {
	switch code {
	case codes.InvalidArgument, codes.OutOfRange:
		return "INVALID_PARAMETER"
	case codes.DeadlineExceeded, codes.Canceled:
		return "TIMEOUT"
	case codes.ResourceExhausted:
		return "OVERLOADED"
	case codes.Unavailable:
		return "SERVER_UNREACHABLE"
	}
	return "INTERNAL_ERROR"
}

// local is an error of this side, in the form of the server's.
func local(code string, kind codes.Code, message string, cause error, next ...string) *Error {
	return &Error{Code: code, Message: message, Next: next, status: status.New(kind, message), cause: cause}
}

// invalid is one of what the caller passed.
func invalid(message string, next ...string) *Error {
	return local("INVALID_PARAMETER", codes.InvalidArgument, message, nil, next...)
}
