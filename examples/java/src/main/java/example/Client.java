package example;

import dev.repertoire.client.RepertoireClient;
import dev.repertoire.client.RepertoireException;
import dev.repertoire.client.Result;
import dev.repertoire.client.Session;
import dev.repertoire.v1.ComposeSkillsRequest;
import dev.repertoire.v1.ComposeSkillsResponse;
import dev.repertoire.v1.PublishSkillResponse;
import dev.repertoire.v1.SkillSummary;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Collectors;

/** Publishes the skill text_stats, finds it, loads it, and calls its tool. */
public final class Client {
  private static final String TEXT = "The quick fox. The lazy dog! Don't the fox and the dog agree?";

  private Client() {}

  /** In clear, or behind TLS where REPERTOIRE_CA names the authorities to trust. */
  static String address() {
    String address = System.getenv().getOrDefault("REPERTOIRE_ADDRESS", "127.0.0.1:50051");
    return System.getenv().getOrDefault("REPERTOIRE_CA", "").isEmpty() ? address : "https://" + address;
  }

  public static void main(String[] arguments) throws InterruptedException {
    try (RepertoireClient repertoire = RepertoireClient.connect(address())) {
      run(repertoire);
    }
  }

  private static void run(RepertoireClient repertoire) throws InterruptedException {
    // Publishing the same bytes again gives the version that there is.
    Path skill = Path.of(System.getenv().getOrDefault("SKILL", "../skills/text_stats"));
    PublishSkillResponse published = repertoire.publish(skill, "examples/text/text_stats");
    System.out.printf("published %s %s%n", published.getSkillId(), published.getVersion().getSemanticVersion());

    // What was published is found within a second.
    String found = "";
    for (int attempt = 0; attempt < 20 && !found.equals(published.getSkillId()); attempt++) {
      Thread.sleep(attempt == 0 ? 0 : 100);
      found =
          repertoire.search("how long a text is, and its most frequent words", 1).stream()
              .map(SkillSummary::getId)
              .collect(Collectors.joining(", "));
    }
    System.out.printf("found %s%n", found);

    // What the client has no method of its own for, the generated stubs do.
    ComposeSkillsRequest both =
        ComposeSkillsRequest.newBuilder().addSkills("text_stats").addSkills("write_sql").build();
    ComposeSkillsResponse together = repertoire.composition().composeSkills(both);
    System.out.printf(
        "composed: allowed %s; forbidden %s%n",
        String.join(", ", together.getAllowedToolsList()),
        String.join(", ", together.getForbiddenToolsList()));

    Session session = repertoire.load("text_stats");
    System.out.printf(
        "loaded: tools %s; resources %s%n",
        String.join(", ", session.tools()), String.join(", ", session.resources()));
    session.content().lines().filter(line -> line.startsWith("Words are counted by")).forEach(System.out::println);

    Result called = session.call("text_count_words", Map.of("text", TEXT, "top", 3));
    System.out.printf("called: %s (%.0f)%n", called.text(), called.structured().get("words"));

    System.out.printf("read: %s%n", session.read("samples").split("\n")[1]);

    try {
      // The worker refuses this one: with a code for programs, a sentence, and what to do next.
      session.call("text_count_words", Map.of("text", TEXT, "top", 0));
    } catch (RepertoireException refusal) {
      System.out.printf("refused: %s: %s%n", refusal.code(), refusal.reason());
      refusal.next().forEach(step -> System.out.printf("  next: %s%n", step));
    }
  }
}
