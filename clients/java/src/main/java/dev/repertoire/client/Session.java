package dev.repertoire.client;

import dev.repertoire.v1.CallToolRequest;
import dev.repertoire.v1.CallToolResponse;
import dev.repertoire.v1.LoadSkillDetailRequest;
import dev.repertoire.v1.LoadSkillResponse;
import dev.repertoire.v1.UnloadSkillRequest;
import io.grpc.StatusRuntimeException;
import java.util.List;
import java.util.Map;

/** A loaded skill, in a session of the server's. Threads may share it; closing it unloads it. */
public final class Session implements AutoCloseable {
  private final RepertoireClient client;
  private final LoadSkillResponse loaded;

  Session(RepertoireClient client, LoadSkillResponse loaded) {
    this.client = client;
    this.loaded = loaded;
  }

  /** That of the session, which every call names. It is a key: keep it to yourself. */
  public String id() {
    return loaded.getSessionId();
  }

  /** {@code source/author/slug}. */
  public String skillId() {
    return loaded.getSkillId();
  }

  /** What the agent reads. */
  public String content() {
    return loaded.getContent();
  }

  /** Names of the tools that are unlocked. */
  public List<String> tools() {
    return loaded.getToolsList();
  }

  /** Names of the resources that {@link #read} reads. */
  public List<String> resources() {
    return loaded.getResourcesList();
  }

  /** All that the server answered. */
  public LoadSkillResponse loaded() {
    return loaded;
  }

  /** Calls a tool of the skill without arguments. */
  public Result call(String tool) {
    return call(tool, Map.of());
  }

  /**
   * Calls a tool of the skill, with arguments as {@link Structs} takes them. A call is repeated
   * only where it never began, so that no tool does anything twice.
   */
  public Result call(String tool, Map<String, ?> arguments) {
    CallToolRequest request =
        CallToolRequest.newBuilder()
            .setSessionId(id())
            .setSkillId(skillId())
            .setName(tool)
            .setArguments(Structs.of(arguments))
            .build();
    try {
      CallToolResponse called = client.lookup().callTool(request);
      Map<String, Object> structured = called.hasStructured() ? Structs.map(called.getStructured()) : null;
      return new Result(called.getContent(), structured, called);
    } catch (StatusRuntimeException error) {
      throw RepertoireException.of(error);
    }
  }

  /** Reads a resource of the skill. */
  public String read(String resource) {
    LoadSkillDetailRequest request =
        LoadSkillDetailRequest.newBuilder()
            .setSessionId(id())
            .setSkillId(skillId())
            .setResource(resource)
            .build();
    try {
      return client.lookup().loadSkillDetail(request).getContent();
    } catch (StatusRuntimeException error) {
      throw RepertoireException.of(error);
    }
  }

  /** Takes the skill out of its session. A session that nobody uses ends by itself. */
  public void unload() {
    try {
      client.lookup().unloadSkill(UnloadSkillRequest.newBuilder().setSessionId(id()).setSkillId(skillId()).build());
    } catch (StatusRuntimeException error) {
      throw RepertoireException.of(error);
    }
  }

  /** The same, for whom it is enough that it is gone, or will be. */
  @Override
  public void close() {
    try {
      unload();
    } catch (NotFoundException | UnavailableException gone) {
      // A session ends by itself.
      return;
    }
  }
}
