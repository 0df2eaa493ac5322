// Command client publishes the skill text_stats, finds it, loads it, and calls its tool.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"repertoire.dev/client"
	pb "repertoire.dev/client/repertoirev1"
)

const text = "The quick fox. The lazy dog! Don't the fox and the dog agree?"

// skill is the folder of the skill, from this example's.
var skill = cmp.Or(os.Getenv("SKILL"), filepath.Join("..", "skills", "text_stats"))

// address is in clear, or behind TLS where REPERTOIRE_CA names the authorities to trust.
func address() string {
	address := cmp.Or(os.Getenv("REPERTOIRE_ADDRESS"), "127.0.0.1:50051")
	if os.Getenv("REPERTOIRE_CA") != "" {
		return "https://" + address
	}
	return address
}

func run(ctx context.Context) error {
	repertoire, err := client.Connect(address())
	if err != nil {
		return err
	}
	defer repertoire.Close()

	// Publishing the same bytes again gives the version that there is.
	published, err := repertoire.Publish(ctx, skill, &pb.PublishSkillRequest{SkillId: "examples/text/text_stats"})
	if err != nil {
		return err
	}
	fmt.Printf("published %s %s\n", published.SkillId, published.Version.SemanticVersion)

	// What was published is found within a second.
	var id string
	for range 20 {
		found, err := repertoire.Search(ctx, "how long a text is, and its most frequent words", 1)
		if err != nil {
			return err
		}
		if len(found) == 1 && found[0].Id == published.SkillId {
			id = found[0].Id
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	fmt.Printf("found %s\n", id)

	// What the client has no method of its own for, the generated stubs do.
	together, err := repertoire.Composition.ComposeSkills(ctx, &pb.ComposeSkillsRequest{
		Skills: []string{"text_stats", "write_sql"},
	})
	if err != nil {
		return err
	}
	fmt.Printf("composed: allowed %s; forbidden %s\n",
		strings.Join(together.AllowedTools, ", "), strings.Join(together.ForbiddenTools, ", "))

	session, err := repertoire.Load(ctx, "text_stats")
	if err != nil {
		return err
	}
	fmt.Printf("loaded: tools %s; resources %s\n",
		strings.Join(session.Tools, ", "), strings.Join(session.Resources, ", "))
	for line := range strings.Lines(session.Content) {
		if strings.HasPrefix(line, "Words are counted by") {
			fmt.Print(line)
		}
	}

	called, err := session.Call(ctx, "text_count_words", map[string]any{"text": text, "top": 3})
	if err != nil {
		return err
	}
	fmt.Printf("called: %s (%v)\n", called.Text, called.Structured["words"])

	samples, err := session.Read(ctx, "samples")
	if err != nil {
		return err
	}
	fmt.Printf("read: %s\n", strings.Split(samples, "\n")[1])

	// The worker refuses this one: with a code for programs, a sentence, and what to do next.
	_, err = session.Call(ctx, "text_count_words", map[string]any{"text": text, "top": 0})
	var refusal *client.Error
	if !errors.As(err, &refusal) {
		return err
	}
	fmt.Printf("refused: %s: %s\n", refusal.Code, refusal.Message)
	for _, step := range refusal.Next {
		fmt.Printf("  next: %s\n", step)
	}
	return nil
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}
