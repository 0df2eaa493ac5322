// Command client publishes the skill text_stats, finds it, loads it, and calls its tool.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	pb "example/gen/repertoire/v1"
)

const text = "The quick fox. The lazy dog! Don't the fox and the dog agree?"

// skill is the folder of the skill, from this example's.
var skill = cmp.Or(os.Getenv("SKILL"), filepath.Join("..", "skills", "text_stats"))

func files() ([]*pb.File, error) {
	entries, err := os.ReadDir(skill)
	if err != nil {
		return nil, err
	}
	var files []*pb.File
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(skill, entry.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, &pb.File{Path: entry.Name(), Content: content})
	}
	return files, nil
}

// security is TLS where REPERTOIRE_CA names the authorities to trust.
func security() (credentials.TransportCredentials, error) {
	if authorities := os.Getenv("REPERTOIRE_CA"); authorities != "" {
		return credentials.NewClientTLSFromFile(authorities, "")
	}
	return insecure.NewCredentials(), nil
}

func run(ctx context.Context, address string) error {
	security, err := security()
	if err != nil {
		return err
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(security))
	if err != nil {
		return err
	}
	defer connection.Close()
	lookup := pb.NewLookupClient(connection)

	files, err := files()
	if err != nil {
		return err
	}
	// Publishing the same bytes again gives the version that there is.
	published, err := pb.NewRegistryClient(connection).PublishSkill(ctx, &pb.PublishSkillRequest{
		SkillId: "examples/text/text_stats",
		Files:   files,
	})
	if err != nil {
		return err
	}
	fmt.Printf("published %s %s\n", published.SkillId, published.Version.SemanticVersion)

	// What was published is found within a second.
	var found []string
	for range 20 {
		answer, err := lookup.Search(ctx, &pb.SearchRequest{
			Query: "how long a text is, and its most frequent words",
			Limit: proto.Int32(1),
		})
		if err != nil {
			return err
		}
		found = nil
		for _, skill := range answer.Results {
			found = append(found, skill.Id)
		}
		if slices.Equal(found, []string{published.SkillId}) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	fmt.Printf("found %s\n", strings.Join(found, ", "))

	together, err := pb.NewCompositionClient(connection).ComposeSkills(ctx, &pb.ComposeSkillsRequest{
		Skills: []string{"text_stats", "write_sql"},
	})
	if err != nil {
		return err
	}
	fmt.Printf("composed: allowed %s; forbidden %s\n",
		strings.Join(together.AllowedTools, ", "), strings.Join(together.ForbiddenTools, ", "))

	// The session is the server's; its id goes with every call.
	loaded, err := lookup.LoadSkill(ctx, &pb.LoadSkillRequest{SkillId: "text_stats"})
	if err != nil {
		return err
	}
	fmt.Printf("loaded: tools %s; resources %s\n",
		strings.Join(loaded.Tools, ", "), strings.Join(loaded.Resources, ", "))
	for line := range strings.Lines(loaded.Content) {
		if strings.HasPrefix(line, "Words are counted by") {
			fmt.Print(line)
		}
	}

	called, err := call(ctx, lookup, loaded.SessionId, 3)
	if err != nil {
		return err
	}
	fmt.Printf("called: %s (%v)\n", called.Content, called.Structured.AsMap()["words"])

	sample, err := lookup.LoadSkillDetail(ctx, &pb.LoadSkillDetailRequest{
		SkillId:   "text_stats",
		Resource:  "samples",
		SessionId: loaded.SessionId,
	})
	if err != nil {
		return err
	}
	fmt.Printf("read: %s\n", strings.Split(sample.Content, "\n")[1])

	// The worker refuses this one; what it says comes as details of the status.
	if _, err = call(ctx, lookup, loaded.SessionId, 0); err != nil {
		explain(err)
	}
	return nil
}

func call(ctx context.Context, lookup pb.LookupClient, session string, top int) (*pb.CallToolResponse, error) {
	arguments, err := structpb.NewStruct(map[string]any{"text": text, "top": top})
	if err != nil {
		return nil, err
	}
	return lookup.CallTool(ctx, &pb.CallToolRequest{
		SessionId: session,
		Name:      "text_count_words",
		Arguments: arguments,
	})
}

// explain prints a refusal: a code for programs, a sentence, and what to do next.
func explain(err error) {
	refusal := status.Convert(err)
	for _, detail := range refusal.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			fmt.Printf("refused: %s: %s\n", detail.Reason, refusal.Message())
		case *errdetails.Help:
			for _, link := range detail.Links {
				fmt.Printf("  next: %s\n", link.Description)
			}
		}
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := run(ctx, cmp.Or(os.Getenv("REPERTOIRE_ADDRESS"), "127.0.0.1:50051")); err != nil {
		log.Fatal(err)
	}
}
