// Command driver does what a test says with the client, and tells in JSON, a line each.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"repertoire.dev/client"
	pb "repertoire.dev/client/repertoirev1"
)

type told map[string]any

var out = json.NewEncoder(os.Stdout)

func tell(what told) {
	if err := out.Encode(what); err != nil {
		os.Exit(1)
	}
}

var kinds = map[string]error{
	"not_found": client.ErrNotFound, "refused": client.ErrRefused, "conflict": client.ErrConflict,
	"denied": client.ErrDenied, "unavailable": client.ErrUnavailable,
}

func tellError(err error) {
	var refusal *client.Error
	if !errors.As(err, &refusal) {
		tell(told{"untyped": err.Error()})
		return
	}
	kind := ""
	for name, is := range kinds {
		if errors.Is(err, is) {
			kind += name
		}
	}
	violations := []told{}
	for _, violation := range refusal.Violations {
		violations = append(violations, told{"field": violation.Field, "message": violation.Message})
	}
	tell(told{
		"code": refusal.Code, "message": refusal.Message, "next": refusal.Next, "kind": kind,
		"status": refusal.Status().String(), "violations": violations, "retry_after": refusal.RetryAfter.Seconds(),
	})
}

func run(ctx context.Context, arguments []string) error {
	repertoire, err := client.Connect("")
	if err != nil {
		return err
	}
	defer repertoire.Close()
	switch argument := arguments[1:]; arguments[0] {
	case "publish":
		published, err := repertoire.Publish(ctx, argument[0], &pb.PublishSkillRequest{SkillId: argument[1]})
		if err != nil {
			return err
		}
		tell(told{"skill_id": published.SkillId, "outcome": published.Outcome.String()})
	case "search":
		found, err := repertoire.Search(ctx, argument[0], 1)
		if err != nil {
			return err
		}
		ids := []string{}
		for _, skill := range found {
			ids = append(ids, skill.Id)
		}
		tell(told{"found": ids})
	case "load":
		session, err := repertoire.Load(ctx, argument[0])
		if err != nil {
			return err
		}
		tell(told{"tools": session.Tools, "resources": session.Resources, "content": session.Content})
	case "call":
		session, err := repertoire.Load(ctx, argument[0])
		if err != nil {
			return err
		}
		result, err := session.Call(ctx, argument[1], map[string]any{"text": "so and so"})
		if err != nil {
			return err
		}
		tell(told{"text": result.Text, "structured": result.Structured})
	case "stub":
		// What the convenience has no word for fails in the same way.
		_, err := repertoire.Lookup.GetSkill(ctx, &pb.GetSkillRequest{SkillId: argument[0]})
		return err
	case "repeat":
		// A search after the other, until whoever reads has enough.
		for {
			started := time.Now()
			if _, err := repertoire.Search(ctx, "skill", 1); err != nil {
				return err
			}
			tell(told{"seconds": time.Since(started).Seconds()})
			time.Sleep(10 * time.Millisecond)
		}
	case "watch":
		request := &pb.WatchRequest{}
		if len(argument) > 0 {
			request.ResumeToken = argument[0]
		}
		watch, err := repertoire.Watch(ctx, request)
		if err != nil {
			return err
		}
		tell(told{"resume_token": watch.ResumeToken()})
		for event, err := range watch.Events() {
			if err != nil {
				return err
			}
			tell(told{
				"sequence": event.Sequence, "type": event.Type.String(), "skill_id": event.SkillId,
				"version_number": event.VersionNumber, "resume_token": watch.ResumeToken(),
			})
		}
	default:
		tell(told{"untyped": "no such command: " + arguments[0]})
	}
	return nil
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		tellError(err)
		os.Exit(1)
	}
}
