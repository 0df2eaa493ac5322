import dev.repertoire.client.ConflictException;
import dev.repertoire.client.DeniedException;
import dev.repertoire.client.NotFoundException;
import dev.repertoire.client.RefusedException;
import dev.repertoire.client.RepertoireClient;
import dev.repertoire.client.RepertoireException;
import dev.repertoire.client.Result;
import dev.repertoire.client.Session;
import dev.repertoire.client.UnavailableException;
import dev.repertoire.client.Watch;
import dev.repertoire.v1.Event;
import dev.repertoire.v1.GetSkillRequest;
import dev.repertoire.v1.PublishSkillResponse;
import dev.repertoire.v1.SkillSummary;
import dev.repertoire.v1.WatchRequest;
import com.google.gson.Gson;
import io.grpc.StatusRuntimeException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** Does what a test says with the client, and tells in JSON, a line each. */
final class Driver {
  private static final Gson JSON = new Gson();

  private Driver() {}

  private static void tell(Map<String, ?> what) {
    System.out.println(JSON.toJson(what));
    if (System.out.checkError()) {
      System.exit(1);
    }
  }

  private static String kind(RepertoireException error) {
    if (error instanceof NotFoundException) {
      return "not_found";
    } else if (error instanceof RefusedException) {
      return "refused";
    } else if (error instanceof ConflictException) {
      return "conflict";
    } else if (error instanceof DeniedException) {
      return "denied";
    }
    return error instanceof UnavailableException ? "unavailable" : "";
  }

  private static void tell(RepertoireException error) {
    tell(
        Map.of(
            "code", error.code(),
            "message", error.reason(),
            "next", error.next(),
            "kind", kind(error),
            "status", error.status().toString(),
            "violations",
                error.violations().stream()
                    .map(violation -> Map.of("field", violation.field(), "message", violation.message()))
                    .toList(),
            "retry_after", error.retryAfter().toMillis() / 1000.0));
  }

  private static void run(RepertoireClient repertoire, String command, List<String> words) throws Exception {
    switch (command) {
      case "publish" -> {
        PublishSkillResponse published = repertoire.publish(Path.of(words.get(0)), words.get(1));
        tell(Map.of("skill_id", published.getSkillId(), "outcome", published.getOutcome().toString()));
      }
      case "search" ->
          tell(Map.of("found", repertoire.search(words.get(0), 1).stream().map(SkillSummary::getId).toList()));
      case "load" -> {
        Session session = repertoire.load(words.get(0));
        tell(Map.of("tools", session.tools(), "resources", session.resources(), "content", session.content()));
      }
      case "call" -> {
        Result result = repertoire.load(words.get(0)).call(words.get(1), Map.of("text", "so and so"));
        tell(Map.of("text", result.text(), "structured", String.valueOf(result.structured())));
      }
      // What the convenience has no word for fails in the same way.
      case "stub" -> repertoire.lookup().getSkill(GetSkillRequest.newBuilder().setSkillId(words.get(0)).build());
      // A search after the other, until whoever reads has enough.
      case "repeat" -> {
        while (true) {
          long started = System.nanoTime();
          repertoire.search("skill", 1);
          tell(Map.of("seconds", (System.nanoTime() - started) / 1e9));
          Thread.sleep(10);
        }
      }
      case "watch" -> {
        String token = words.isEmpty() ? "" : words.get(0);
        try (Watch watch = repertoire.watch(WatchRequest.newBuilder().setResumeToken(token).build())) {
          tell(Map.of("resume_token", watch.resumeToken()));
          while (watch.hasNext()) {
            Event event = watch.next();
            tell(
                Map.of(
                    "sequence", event.getSequence(),
                    "type", event.getType().toString(),
                    "skill_id", event.getSkillId(),
                    "version_number", event.getVersionNumber(),
                    "resume_token", watch.resumeToken()));
          }
        }
      }
      default -> tell(Map.of("untyped", "no such command: " + command));
    }
  }

  public static void main(String[] arguments) throws Exception {
    List<String> words = List.of(arguments);
    try (RepertoireClient repertoire = RepertoireClient.connect()) {
      run(repertoire, words.get(0), words.subList(1, words.size()));
    } catch (RepertoireException error) {
      tell(error);
      System.exit(1);
    } catch (StatusRuntimeException error) {
      tell(RepertoireException.of(error));
      System.exit(1);
    }
  }
}
