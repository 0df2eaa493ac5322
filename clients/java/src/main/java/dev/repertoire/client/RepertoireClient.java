package dev.repertoire.client;

import dev.repertoire.v1.CompositionGrpc;
import dev.repertoire.v1.LearningGrpc;
import dev.repertoire.v1.LoadSkillRequest;
import dev.repertoire.v1.LookupGrpc;
import dev.repertoire.v1.PublishSkillRequest;
import dev.repertoire.v1.PublishSkillResponse;
import dev.repertoire.v1.RegistryGrpc;
import dev.repertoire.v1.SearchRequest;
import dev.repertoire.v1.SkillSummary;
import dev.repertoire.v1.ToolHostGrpc;
import dev.repertoire.v1.WatchRequest;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * A connection to a Repertoire, the server of skills for agents. Threads may share it.
 *
 * <p>It does four things that everybody does, on top of the generated stubs, which stay within
 * reach: publish a folder, search, load a skill and call its tools, watch what changes. Messages
 * of the contract are in {@code dev.repertoire.v1}.
 *
 * <p>Every unary call has a deadline and is repeated while that is safe. What fails here throws a
 * {@link RepertoireException}; {@link RepertoireException#of} makes one of what a stub throws.
 */
public final class RepertoireClient implements AutoCloseable {
  private static final String DEFAULT_ADDRESS = "127.0.0.1:50051";
  /** Above what the server sends: 20 MiB. */
  private static final int MAX_MESSAGE = 24 << 20;
  /** Headers that the protocol itself needs. */
  private static final Set<String> RESERVED =
      Set.of("host", "te", "content-type", "connection", "transfer-encoding", "user-agent");

  private final ManagedChannel connection;
  private final Calls calls;
  private final Channel channel;
  private final Duration timeout;
  private final ScheduledThreadPoolExecutor timer;

  private RepertoireClient(Builder settings) {
    Address address = Address.parse(settings.address);
    if (settings.hasToken && !address.encrypted() && !address.isLocal() && !settings.inClear) {
      throw RepertoireException.invalid(
          "refusing to send a token over plain HTTP to " + address.said(),
          "Write https:// where the server has TLS");
    }
    timeout = settings.timeout;
    timer =
        new ScheduledThreadPoolExecutor(
            1,
            work -> {
              Thread thread = new Thread(work, "repertoire-retries");
              thread.setDaemon(true);
              return thread;
            });
    timer.setRemoveOnCancelPolicy(true);
    connection =
        Grpc.newChannelBuilder(address.target(), address.credentials(settings.authorities))
            .maxInboundMessageSize(MAX_MESSAGE)
            // A stream must notice that the other side is gone without a word.
            .keepAliveTime(1, TimeUnit.MINUTES)
            .keepAliveTimeout(20, TimeUnit.SECONDS)
            .build();
    calls = new Calls(settings.headers, timeout, timer, connection::resetConnectBackoff);
    channel = ClientInterceptors.intercept(connection, calls);
  }

  /**
   * Prepares a connection to {@code REPERTOIRE_SERVER}, else 127.0.0.1:50051. The first call
   * connects.
   */
  public static RepertoireClient connect() {
    return builder().build();
  }

  /**
   * Prepares a connection to {@code https://HOST}, {@code http://HOST:PORT}, or {@code
   * HOST:PORT}, which is in clear as http is.
   */
  public static RepertoireClient connect(String address) {
    return builder().address(address).build();
  }

  /** More settings of a connection. */
  public static Builder builder() {
    return new Builder();
  }

  /** Publishes skills and keeps their versions. */
  public RegistryGrpc.RegistryBlockingStub registry() {
    return RegistryGrpc.newBlockingStub(channel);
  }

  /** Finds skills and hands them out. */
  public LookupGrpc.LookupBlockingStub lookup() {
    return LookupGrpc.newBlockingStub(channel);
  }

  /** Composes skills, and installs them. */
  public CompositionGrpc.CompositionBlockingStub composition() {
    return CompositionGrpc.newBlockingStub(channel);
  }

  /** Learning paths and their exercises. */
  public LearningGrpc.LearningBlockingStub learning() {
    return LearningGrpc.newBlockingStub(channel);
  }

  /** Where workers attach. */
  public ToolHostGrpc.ToolHostStub toolHost() {
    return ToolHostGrpc.newStub(channel);
  }

  /** What the stubs call through, for stubs of your own. */
  public Channel channel() {
    return channel;
  }

  /** Uploads the folder of a skill; see {@link #publish(Path, PublishSkillRequest)}. */
  public PublishSkillResponse publish(Path folder) {
    return publish(folder, PublishSkillRequest.getDefaultInstance());
  }

  /** Uploads the folder of a skill that is to live under an id. */
  public PublishSkillResponse publish(Path folder, String skillId) {
    return publish(folder, PublishSkillRequest.newBuilder().setSkillId(skillId).build());
  }

  /**
   * Uploads the folder of a skill and makes it the active version. The same bytes give the
   * version that has them already. Links, secrets and what tools make stay on this machine.
   *
   * @param request says more, such as what changed; its files and folder are those that are read
   */
  public PublishSkillResponse publish(Path folder, PublishSkillRequest request) {
    PublishSkillRequest.Builder whole = request.toBuilder().clearFiles().addAllFiles(Folder.read(folder));
    Path name = folder.toAbsolutePath().normalize().getFileName();
    if (whole.getFolder().isEmpty() && name != null) {
      whole.setFolder(name.toString());
    }
    if (whole.getIdempotencyKey().isEmpty()) {
      // A retry then answers as the attempt did that was carried out.
      whole.setIdempotencyKey(UUID.randomUUID().toString());
    }
    try {
      return registry().publishSkill(whole.build());
    } catch (StatusRuntimeException error) {
      throw RepertoireException.of(error);
    }
  }

  /** Finds ten skills; see {@link #search(String, int)}. */
  public List<SkillSummary> search(String query) {
    return search(SearchRequest.newBuilder().setQuery(query).build());
  }

  /** Finds skills by words, a name, or a sentence about a task, the best first. */
  public List<SkillSummary> search(String query, int limit) {
    return search(SearchRequest.newBuilder().setQuery(query).setLimit(limit).build());
  }

  private List<SkillSummary> search(SearchRequest request) {
    try {
      return lookup().search(request).getResultsList();
    } catch (StatusRuntimeException error) {
      throw RepertoireException.of(error);
    }
  }

  /** Loads a skill, by its id or short name, into a session of its own. */
  public Session load(String skill) {
    return load(LoadSkillRequest.newBuilder().setSkillId(skill).build());
  }

  /** Loads a skill into a session that there is. */
  public Session load(String skill, String session) {
    return load(LoadSkillRequest.newBuilder().setSkillId(skill).setSessionId(session).build());
  }

  /** Loads a skill as the request says: by version, with what its handler is told. */
  public Session load(LoadSkillRequest request) {
    try {
      return new Session(this, lookup().loadSkill(request));
    } catch (StatusRuntimeException error) {
      throw RepertoireException.of(error);
    }
  }

  /** Tells what happens to all skills from now on. */
  public Watch watch() {
    return watch(WatchRequest.getDefaultInstance());
  }

  /**
   * Tells what happens to skills, without gaps and without repeats, also when the connection
   * breaks or the server starts again meanwhile. What happens once this has returned is told.
   *
   * @param request says of which skills and from where
   */
  public Watch watch(WatchRequest request) {
    return new Watch(registry(), request, timeout, timer, connection::resetConnectBackoff);
  }

  /** Ends the connection, and the calls that are in work. */
  @Override
  public void close() {
    connection.shutdownNow();
    timer.shutdown();
    calls.close();
  }

  /** Settings of a connection. */
  public static final class Builder {
    private String address = environment("REPERTOIRE_SERVER", DEFAULT_ADDRESS);
    private String token = environment("REPERTOIRE_TOKEN", "");
    private Path authorities;
    private Duration timeout = Duration.ofSeconds(30);
    private boolean inClear;
    private boolean hasToken;
    private final Metadata headers = new Metadata();

    private Builder() {
      String file = environment("REPERTOIRE_CA", "");
      authorities = file.isEmpty() ? null : Path.of(file);
    }

    /** A variable that is empty is not set. */
    private static String environment(String name, String otherwise) {
      String value = System.getenv(name);
      return value == null || value.isEmpty() ? otherwise : value;
    }

    /** Where the server is; without this, or empty, see {@link RepertoireClient#connect()}. */
    public Builder address(String address) {
      if (!address.isEmpty()) {
        this.address = address;
      }
      return this;
    }

    /** A token to send with every call; without this that of {@code REPERTOIRE_TOKEN}. */
    public Builder token(String token) {
      this.token = token;
      return this;
    }

    /**
     * A file (PEM) of authorities to trust beside those of Java; without this that of {@code
     * REPERTOIRE_CA}.
     */
    public Builder ca(Path authorities) {
      this.authorities = authorities;
      return this;
    }

    /** A header to send with every call. */
    public Builder header(String name, String value) {
      String lower = name.toLowerCase(Locale.ROOT);
      if (RESERVED.contains(lower) || lower.startsWith("grpc-")) {
        throw RepertoireException.invalid("`" + lower + "` is for the protocol to set");
      }
      if (!lower.matches("[0-9a-z_.-]+") || !isText(value)) {
        throw RepertoireException.invalid("the header `" + lower + "` has what no header may have");
      }
      headers.put(Metadata.Key.of(lower, Metadata.ASCII_STRING_MARSHALLER), value);
      hasToken |= lower.equals("authorization");
      return this;
    }

    /** How long a unary call may take that has no deadline, all its attempts together. */
    public Builder timeout(Duration timeout) {
      if (timeout.isNegative() || timeout.isZero()) {
        throw RepertoireException.invalid("the timeout of calls must be more than nothing");
      }
      this.timeout = timeout;
      return this;
    }

    /**
     * Sends the token without TLS to another machine, where all on the way can read it: for a
     * network that encrypts by itself.
     */
    public Builder tokenInClear() {
      inClear = true;
      return this;
    }

    /** Prepares the connection; the first call connects. */
    public RepertoireClient build() {
      if (!token.isEmpty()) {
        if (!isText(token)) {
          throw RepertoireException.invalid("the token has what no token may have");
        }
        headers.put(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer " + token);
        hasToken = true;
      }
      return new RepertoireClient(this);
    }

    private static boolean isText(String value) {
      return value.matches("[\\x20-\\x7e]*");
    }
  }
}
