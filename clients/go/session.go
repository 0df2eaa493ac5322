package client

import (
	"context"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	pb "repertoire.dev/client/repertoirev1"
)

// Session is a loaded skill, in a session of the server's. Goroutines may share it.
type Session struct {
	// ID is the session's, which every call names. It is a key: keep it to yourself.
	ID string
	// SkillID is source/author/slug.
	SkillID string
	// Content is what the agent reads.
	Content string
	// Tools are the names of the tools that are unlocked.
	Tools []string
	// Resources are the names of the resources that Read reads.
	Resources []string
	// Loaded is all that the server answered.
	Loaded *pb.LoadSkillResponse

	client *Client
}

// Result is what a tool answered.
type Result struct {
	// Text is the result for a reader.
	Text string
	// Structured is the result for programs; nil: there is none.
	Structured map[string]any
	// Called is all that the server answered.
	Called *pb.CallToolResponse
}

// Load loads a skill, by its id or short name, into a session of its own.
func (c *Client) Load(ctx context.Context, skill string) (*Session, error) {
	return c.LoadWith(ctx, &pb.LoadSkillRequest{SkillId: skill})
}

// LoadWith loads a skill as the request says: into a session that there is, by version, with
// what its handler is told.
func (c *Client) LoadWith(ctx context.Context, request *pb.LoadSkillRequest) (*Session, error) {
	loaded, err := c.Lookup.LoadSkill(ctx, request)
	if err != nil {
		return nil, err
	}
	return &Session{
		ID:        loaded.SessionId,
		SkillID:   loaded.SkillId,
		Content:   loaded.Content,
		Tools:     loaded.Tools,
		Resources: loaded.Resources,
		Loaded:    loaded,
		client:    c,
	}, nil
}

// Call calls a tool of the skill. The arguments are whatever is an object in JSON: a map, a
// struct; nil: none.
//
// A call is repeated only where it never began, so that no tool does anything twice.
func (s *Session) Call(ctx context.Context, tool string, arguments any) (*Result, error) {
	object, err := object(arguments)
	if err != nil {
		return nil, err
	}
	called, err := s.client.Lookup.CallTool(ctx, &pb.CallToolRequest{
		SessionId: s.ID, SkillId: s.SkillID, Name: tool, Arguments: object,
	})
	if err != nil {
		return nil, err
	}
	result := &Result{Text: called.Content, Called: called}
	if called.Structured != nil {
		result.Structured = called.Structured.AsMap()
	}
	return result, nil
}

func object(arguments any) (*structpb.Struct, error) {
	if arguments == nil {
		return nil, nil
	}
	object := &structpb.Struct{}
	encoded, err := json.Marshal(arguments)
	if err == nil {
		err = protojson.Unmarshal(encoded, object)
	}
	if err != nil {
		return nil, invalid("the arguments are no object of JSON: "+err.Error(), "Pass a map or a struct")
	}
	return object, nil
}

// Read reads a resource of the skill.
func (s *Session) Read(ctx context.Context, resource string) (string, error) {
	response, err := s.client.Lookup.LoadSkillDetail(ctx, &pb.LoadSkillDetailRequest{
		SkillId: s.SkillID, Resource: resource, SessionId: s.ID,
	})
	return response.GetContent(), err
}

// Unload takes the skill out of its session. A session that nobody uses ends by itself.
func (s *Session) Unload(ctx context.Context) error {
	_, err := s.client.Lookup.UnloadSkill(ctx, &pb.UnloadSkillRequest{SessionId: s.ID, SkillId: s.SkillID})
	return err
}
