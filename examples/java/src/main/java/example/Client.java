package example;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Struct;
import com.google.protobuf.util.Values;
import com.google.rpc.ErrorInfo;
import com.google.rpc.Help;
import com.google.rpc.Status;
import dev.repertoire.v1.CallToolRequest;
import dev.repertoire.v1.CallToolResponse;
import dev.repertoire.v1.ComposeSkillsRequest;
import dev.repertoire.v1.ComposeSkillsResponse;
import dev.repertoire.v1.CompositionGrpc;
import dev.repertoire.v1.File;
import dev.repertoire.v1.LoadSkillDetailRequest;
import dev.repertoire.v1.LoadSkillDetailResponse;
import dev.repertoire.v1.LoadSkillRequest;
import dev.repertoire.v1.LoadSkillResponse;
import dev.repertoire.v1.LookupGrpc;
import dev.repertoire.v1.PublishSkillRequest;
import dev.repertoire.v1.PublishSkillResponse;
import dev.repertoire.v1.RegistryGrpc;
import dev.repertoire.v1.SearchRequest;
import dev.repertoire.v1.SkillSummary;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.protobuf.StatusProto;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Collectors;

/** Publishes the skill text_stats, finds it, loads it, and calls its tool. */
public final class Client {
  private static final String TEXT = "The quick fox. The lazy dog! Don't the fox and the dog agree?";

  private Client() {}

  /** TLS, where REPERTOIRE_CA names the authorities to trust. */
  private static ChannelCredentials security() throws IOException {
    String authorities = System.getenv().getOrDefault("REPERTOIRE_CA", "");
    if (authorities.isEmpty()) {
      return InsecureChannelCredentials.create();
    }
    return TlsChannelCredentials.newBuilder().trustManager(new java.io.File(authorities)).build();
  }

  public static void main(String[] arguments) throws IOException, InterruptedException {
    String address = System.getenv().getOrDefault("REPERTOIRE_ADDRESS", "127.0.0.1:50051");
    ManagedChannel channel = Grpc.newChannelBuilder(address, security()).build();
    try {
      run(channel);
    } finally {
      channel.shutdownNow();
    }
  }

  private static void run(ManagedChannel channel) throws IOException, InterruptedException {
    LookupGrpc.LookupBlockingStub lookup = LookupGrpc.newBlockingStub(channel);

    PublishSkillRequest.Builder skill = PublishSkillRequest.newBuilder().setSkillId("examples/text/text_stats");
    Path folder = Path.of(System.getenv().getOrDefault("SKILL", "../skills/text_stats"));
    try (DirectoryStream<Path> paths = Files.newDirectoryStream(folder)) {
      for (Path path : paths) {
        ByteString content = ByteString.copyFrom(Files.readAllBytes(path));
        skill.addFiles(File.newBuilder().setPath(path.getFileName().toString()).setContent(content));
      }
    }
    // Publishing the same bytes again gives the version that there is.
    PublishSkillResponse published = RegistryGrpc.newBlockingStub(channel).publishSkill(skill.build());
    System.out.printf("published %s %s%n", published.getSkillId(), published.getVersion().getSemanticVersion());

    // What was published is found within a second.
    SearchRequest search =
        SearchRequest.newBuilder().setQuery("how long a text is, and its most frequent words").setLimit(1).build();
    String found = "";
    for (int attempt = 0; attempt < 20; attempt++) {
      found =
          lookup.search(search).getResultsList().stream()
              .map(SkillSummary::getId)
              .collect(Collectors.joining(", "));
      if (found.equals(published.getSkillId())) {
        break;
      }
      Thread.sleep(100);
    }
    System.out.printf("found %s%n", found);

    ComposeSkillsRequest both =
        ComposeSkillsRequest.newBuilder().addSkills("text_stats").addSkills("write_sql").build();
    ComposeSkillsResponse together = CompositionGrpc.newBlockingStub(channel).composeSkills(both);
    System.out.printf(
        "composed: allowed %s; forbidden %s%n",
        String.join(", ", together.getAllowedToolsList()),
        String.join(", ", together.getForbiddenToolsList()));

    // The session is the server's; its id goes with every call.
    LoadSkillResponse loaded =
        lookup.loadSkill(LoadSkillRequest.newBuilder().setSkillId("text_stats").build());
    System.out.printf(
        "loaded: tools %s; resources %s%n",
        String.join(", ", loaded.getToolsList()), String.join(", ", loaded.getResourcesList()));
    loaded.getContent().lines().filter(line -> line.startsWith("Words are counted by")).forEach(System.out::println);

    CallToolResponse called = lookup.callTool(call(loaded, 3));
    double words = called.getStructured().getFieldsOrThrow("words").getNumberValue();
    System.out.printf("called: %s (%.0f)%n", called.getContent(), words);

    LoadSkillDetailResponse sample =
        lookup.loadSkillDetail(
            LoadSkillDetailRequest.newBuilder()
                .setSkillId("text_stats")
                .setResource("samples")
                .setSessionId(loaded.getSessionId())
                .build());
    System.out.printf("read: %s%n", sample.getContent().split("\n")[1]);

    try {
      // The worker refuses this one; what it says comes as details of the status.
      lookup.callTool(call(loaded, 0));
    } catch (StatusRuntimeException error) {
      explain(error);
    }
  }

  private static CallToolRequest call(LoadSkillResponse loaded, int top) {
    return CallToolRequest.newBuilder()
        .setSessionId(loaded.getSessionId())
        .setName("text_count_words")
        .setArguments(
            Struct.newBuilder().putFields("text", Values.of(TEXT)).putFields("top", Values.of(top)))
        .build();
  }

  /** Prints a refusal: a code for programs, a sentence, and what to do next. */
  private static void explain(StatusRuntimeException error) throws InvalidProtocolBufferException {
    Status status = StatusProto.fromThrowable(error);
    for (Any detail : status.getDetailsList()) {
      if (detail.is(ErrorInfo.class)) {
        System.out.printf("refused: %s: %s%n", detail.unpack(ErrorInfo.class).getReason(), status.getMessage());
      } else if (detail.is(Help.class)) {
        for (Help.Link link : detail.unpack(Help.class).getLinksList()) {
          System.out.printf("  next: %s%n", link.getDescription());
        }
      }
    }
  }
}
