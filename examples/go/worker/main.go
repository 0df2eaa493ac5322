// Command worker serves the skill text_stats.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"repertoire.dev/client"
	pb "repertoire.dev/client/repertoirev1"
)

const concurrency = 4

const sample = "To be, or not to be: that is the question."

var word = regexp.MustCompile(`[a-z]+(?:'[a-z]+)*`)

// refused is what a caller did wrong, in words for the caller.
type refused struct{ field, message, suggestion string }

func (r refused) Error() string { return r.message }

type method func(map[string]any) (*pb.ToolResult, error)

var methods = map[string]method{
	"count_words":   countWords,
	"sample_counts": sampleCounts,
	"load_core": func(map[string]any) (*pb.ToolResult, error) {
		return &pb.ToolResult{Content: "Words are counted by a worker written in Go."}, nil
	},
}

func countWords(arguments map[string]any) (*pb.ToolResult, error) {
	// The server has checked the arguments against the schema of the skill and filled
	// in what was left out. A Struct knows no integers.
	text, _ := arguments["text"].(string)
	top, _ := arguments["top"].(float64)
	if top < 1 || top > 100 {
		return nil, refused{"top", "`top` is from 1 to 100", "Ask for between 1 and 100 words"}
	}
	words := word.FindAllString(strings.ToLower(text), -1)
	counts := map[string]int{}
	for _, word := range words {
		counts[word]++
	}
	type entry struct {
		word  string
		count int
	}
	var entries []entry
	for word, count := range counts {
		entries = append(entries, entry{word, count})
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.word, b.word))
	})
	var listed []string
	var first []any
	for _, entry := range entries[:min(int(top), len(entries))] {
		listed = append(listed, fmt.Sprintf("%s %d", entry.word, entry.count))
		first = append(first, map[string]any{"word": entry.word, "count": entry.count})
	}
	structured, err := structpb.NewStruct(map[string]any{"words": len(words), "top": first})
	if err != nil {
		return nil, err
	}
	content := fmt.Sprintf("%d words; most frequent: %s", len(words), strings.Join(listed, ", "))
	return &pb.ToolResult{Content: content, Structured: structured}, nil
}

func sampleCounts(map[string]any) (*pb.ToolResult, error) {
	counted, err := countWords(map[string]any{"text": sample, "top": 3.0})
	if err != nil {
		return nil, err
	}
	return &pb.ToolResult{Content: sample + "\n" + counted.Content + "\n"}, nil
}

func invoke(invocation *pb.Invocation) *pb.Outcome {
	outcome := &pb.Outcome{InvocationId: invocation.InvocationId}
	result, err := methods[invocation.Method](invocation.Arguments.AsMap())
	var wrong refused
	switch {
	case err == nil:
		outcome.Outcome = &pb.Outcome_Result{Result: result}
	case errors.As(err, &wrong):
		outcome.Outcome = &pb.Outcome_Error{Error: &pb.ToolError{
			Kind:        pb.ToolErrorKind_TOOL_ERROR_KIND_INVALID_ARGUMENT,
			Field:       wrong.field,
			Message:     wrong.message,
			Suggestions: []string{wrong.suggestion},
		}}
	default:
		// For the log; a caller learns nothing of this process.
		log.Printf("%s: %v", invocation.Method, err)
		outcome.Outcome = &pb.Outcome_Error{Error: &pb.ToolError{Message: "The worker could not do it"}}
	}
	return outcome
}

// address is in clear, or behind TLS where REPERTOIRE_CA names the authorities to trust.
func address() string {
	address := cmp.Or(os.Getenv("REPERTOIRE_ADDRESS"), "127.0.0.1:50051")
	if os.Getenv("REPERTOIRE_CA") != "" {
		return "https://" + address
	}
	return address
}

func run(token string) error {
	repertoire, err := client.Connect(address(), client.WithToken(token))
	if err != nil {
		return err
	}
	defer repertoire.Close()
	stream, err := repertoire.ToolHost.Attach(context.Background())
	if err != nil {
		return err
	}

	// One goroutine sends: a stream takes one Send at a time.
	outbox := make(chan *pb.AttachRequest, concurrency)
	go func() {
		for message := range outbox {
			if stream.Send(message) != nil {
				return // Recv says why.
			}
		}
	}()
	hello := &pb.Hello{
		Name:        fmt.Sprintf("go-%d", os.Getpid()),
		Skills:      []*pb.ServedSkill{{SkillId: "examples/text/text_stats"}},
		Concurrency: concurrency,
	}
	for name := range methods {
		hello.Skills[0].Methods = append(hello.Skills[0].Methods, name)
	}
	outbox <- &pb.AttachRequest{Message: &pb.AttachRequest_Hello{Hello: hello}}

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch message := response.Message.(type) {
		case *pb.AttachResponse_Welcome:
			fmt.Printf("attached as %s\n", message.Welcome.WorkerId)
			go live(message.Welcome.Heartbeat.AsDuration(), stop, outbox)
		case *pb.AttachResponse_Invocation:
			go func() {
				outcome := invoke(message.Invocation)
				outbox <- &pb.AttachRequest{Message: &pb.AttachRequest_Outcome{Outcome: outcome}}
			}()
		case *pb.AttachResponse_Notice:
			log.Printf("dropped: %s", message.Notice.Message)
			// A cancel could stop a tool that takes long. The outcome is due all the
			// same: it frees the slot.
		}
	}
}

// live gives signs of life, and says when the worker wants to leave: no more calls,
// please; the server ends the stream when those in work are answered.
func live(every time.Duration, stop <-chan os.Signal, outbox chan<- *pb.AttachRequest) {
	beat := time.NewTicker(every)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			outbox <- &pb.AttachRequest{Message: &pb.AttachRequest_Heartbeat{Heartbeat: &pb.Heartbeat{}}}
		case <-stop:
			outbox <- &pb.AttachRequest{Message: &pb.AttachRequest_Drain{Drain: &pb.Drain{}}}
		}
	}
}

func main() {
	if err := run(os.Getenv("WORKER_TOKEN")); err != nil {
		// Whoever supervises this process starts it again.
		log.Fatal(err)
	}
}
