package example;

import com.google.protobuf.Duration;
import com.google.protobuf.Struct;
import dev.repertoire.client.RepertoireClient;
import dev.repertoire.client.Structs;
import dev.repertoire.v1.AttachRequest;
import dev.repertoire.v1.AttachResponse;
import dev.repertoire.v1.Drain;
import dev.repertoire.v1.Heartbeat;
import dev.repertoire.v1.Hello;
import dev.repertoire.v1.Invocation;
import dev.repertoire.v1.Outcome;
import dev.repertoire.v1.ServedSkill;
import dev.repertoire.v1.ToolError;
import dev.repertoire.v1.ToolErrorKind;
import dev.repertoire.v1.ToolHostGrpc;
import dev.repertoire.v1.ToolResult;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.regex.Pattern;

/** A worker that serves the skill text_stats. */
public final class Worker implements StreamObserver<AttachResponse> {
  private static final int CONCURRENCY = 4;
  private static final Pattern WORD = Pattern.compile("[a-z]+(?:'[a-z]+)*");
  private static final String SAMPLE = "To be, or not to be: that is the question.";

  private static final Map<String, Function<Struct, ToolResult>> METHODS =
      Map.of(
          "count_words", Worker::countWords,
          "sample_counts", Worker::sampleCounts,
          "load_core", arguments -> text("Words are counted by a worker written in Java."));

  /** What a caller did wrong, in words for the caller. */
  private static final class Refused extends RuntimeException {
    private final ToolError error;

    Refused(String field, String message, String suggestion) {
      super(message);
      error =
          ToolError.newBuilder()
              .setKind(ToolErrorKind.TOOL_ERROR_KIND_INVALID_ARGUMENT)
              .setField(field)
              .setMessage(message)
              .addSuggestions(suggestion)
              .build();
    }
  }

  private final ExecutorService tools = Executors.newFixedThreadPool(CONCURRENCY);
  private final ScheduledExecutorService heart = Executors.newSingleThreadScheduledExecutor();
  private final CountDownLatch over = new CountDownLatch(1);
  private StreamObserver<AttachRequest> server;
  private volatile Throwable failure;

  private static ToolResult text(String content) {
    return ToolResult.newBuilder().setContent(content).build();
  }

  private static ToolResult countWords(Struct arguments) {
    // The server has checked the arguments against the schema of the skill and filled in
    // what was left out. A Struct knows no integers.
    String text = arguments.getFieldsOrThrow("text").getStringValue();
    int top = (int) arguments.getFieldsOrThrow("top").getNumberValue();
    if (top < 1 || top > 100) {
      throw new Refused("top", "`top` is from 1 to 100", "Ask for between 1 and 100 words");
    }
    // By word, so that those of the same count stay in this order.
    Map<String, Integer> counts = new TreeMap<>();
    WORD.matcher(text.toLowerCase()).results().forEach(word -> counts.merge(word.group(), 1, Integer::sum));
    int words = counts.values().stream().mapToInt(Integer::intValue).sum();
    List<String> listed = new ArrayList<>();
    List<Map<String, Object>> first = new ArrayList<>();
    counts.entrySet().stream()
        .sorted(Map.Entry.comparingByValue(Comparator.reverseOrder()))
        .limit(top)
        .forEach(
            entry -> {
              listed.add(entry.getKey() + " " + entry.getValue());
              first.add(Map.of("word", entry.getKey(), "count", entry.getValue()));
            });
    return ToolResult.newBuilder()
        .setContent(words + " words; most frequent: " + String.join(", ", listed))
        .setStructured(Structs.of(Map.of("words", words, "top", first)))
        .build();
  }

  private static ToolResult sampleCounts(Struct arguments) {
    return text(SAMPLE + "\n" + countWords(Structs.of(Map.of("text", SAMPLE, "top", 3))).getContent() + "\n");
  }

  /** Several threads speak; a stream takes one message at a time. */
  private synchronized void send(AttachRequest.Builder message) {
    server.onNext(message.build());
  }

  private void run(ToolHostGrpc.ToolHostStub stub) throws Exception {
    server = stub.attach(this);
    ServedSkill served =
        ServedSkill.newBuilder().setSkillId("examples/text/text_stats").addAllMethods(METHODS.keySet()).build();
    String name = "java-" + ProcessHandle.current().pid();
    send(
        AttachRequest.newBuilder()
            .setHello(Hello.newBuilder().setName(name).addSkills(served).setConcurrency(CONCURRENCY)));
    over.await();
    heart.shutdown();
    tools.shutdown();
  }

  @Override
  public void onNext(AttachResponse response) {
    switch (response.getMessageCase()) {
      case WELCOME -> {
        System.out.println("attached as " + response.getWelcome().getWorkerId());
        Duration heartbeat = response.getWelcome().getHeartbeat();
        long every = heartbeat.getSeconds() * 1000 + heartbeat.getNanos() / 1_000_000;
        Runnable beat = () -> send(AttachRequest.newBuilder().setHeartbeat(Heartbeat.getDefaultInstance()));
        heart.scheduleAtFixedRate(beat, every, every, TimeUnit.MILLISECONDS);
      }
      // Off this thread, which must go on reading.
      case INVOCATION -> tools.execute(() -> invoke(response.getInvocation()));
      case NOTICE -> System.err.println("dropped: " + response.getNotice().getMessage());
      // A `cancel` could stop a tool that takes long. The outcome is due all the same: it
      // frees the slot.
      default -> {}
    }
  }

  private void invoke(Invocation invocation) {
    Outcome.Builder outcome = Outcome.newBuilder().setInvocationId(invocation.getInvocationId());
    try {
      outcome.setResult(METHODS.get(invocation.getMethod()).apply(invocation.getArguments()));
    } catch (Refused refused) {
      outcome.setError(refused.error);
    } catch (RuntimeException error) {
      // For the log; a caller learns nothing of this process.
      System.err.println(invocation.getMethod() + ": " + error);
      outcome.setError(ToolError.newBuilder().setMessage("The worker could not do it"));
    }
    send(AttachRequest.newBuilder().setOutcome(outcome));
  }

  @Override
  public void onError(Throwable error) {
    failure = error;
    over.countDown();
  }

  @Override
  public void onCompleted() {
    over.countDown();
  }

  public static void main(String[] arguments) throws Exception {
    String token = System.getenv().getOrDefault("WORKER_TOKEN", "");
    RepertoireClient repertoire = RepertoireClient.builder().address(Client.address()).token(token).build();
    Worker worker = new Worker();
    // No more calls, please; the server ends the stream when those in work are answered.
    Thread main = Thread.currentThread();
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  if (worker.over.getCount() == 0) {
                    return;
                  }
                  worker.send(AttachRequest.newBuilder().setDrain(Drain.getDefaultInstance()));
                  try {
                    main.join(TimeUnit.SECONDS.toMillis(10));
                  } catch (InterruptedException leave) {
                    Thread.currentThread().interrupt();
                  }
                }));
    worker.run(repertoire.toolHost());
    repertoire.close();
    if (worker.failure != null) {
      // Whoever supervises this process starts it again.
      System.err.println(worker.failure.getMessage());
      System.exit(1);
    }
  }
}
