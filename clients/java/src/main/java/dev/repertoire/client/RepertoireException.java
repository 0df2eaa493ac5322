package dev.repertoire.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.Help;
import com.google.rpc.RetryInfo;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.io.Serializable;
import java.nio.channels.ClosedChannelException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A refusal. Its subclasses are the few kinds that a program acts on differently; for all else
 * there is the code.
 */
public class RepertoireException extends RuntimeException {
  private static final long serialVersionUID = 1L;
  private static final Metadata.Key<String> RETRY_AFTER =
      Metadata.Key.of("retry-after", Metadata.ASCII_STRING_MARSHALLER);

  /** At odds with what there is; other states forbid a call whatever there is. */
  private static final Set<String> CONFLICTS =
      Set.of(
          "CONFLICT_DETECTED",
          "IDEMPOTENCY_KEY_REUSED",
          "SKILL_ALREADY_INSTALLED",
          "SOURCE_EXISTS",
          "SUBMISSION_REVIEWED",
          "SYNC_IN_PROGRESS",
          "VERSION_CONFLICT",
          "WRITE_CONTENTION");

  /** One thing that is wrong: a field, or a file and line of a skill. */
  public record Violation(String field, String message) implements Serializable {}

  /** What is known of a refusal. */
  record Told(
      String code,
      String message,
      List<String> next,
      List<Violation> violations,
      Map<String, String> facts,
      Duration retryAfter,
      Status.Code status,
      boolean named,
      Throwable cause)
      implements Serializable {

    /** For whoever reads a log: with what to do next. */
    private String text() {
      StringBuilder text = new StringBuilder(code + ": " + message);
      for (Violation violation : violations) {
        if (!violation.message().equals(message)) {
          text.append('\n').append(violation.field()).append(": ").append(violation.message());
        }
      }
      next.forEach(step -> text.append("\nNext: ").append(step));
      return text.toString();
    }
  }

  private final Told told;

  RepertoireException(Told told) {
    super(told.text(), told.cause());
    this.told = told;
  }

  /** Stable, such as {@code SKILL_NOT_FOUND}. Act on it, never on the message. */
  public String code() {
    return told.code();
  }

  /** What was refused and why, without the code. */
  public String reason() {
    return told.message();
  }

  /** What to do next, most useful first. */
  public List<String> next() {
    return told.next();
  }

  /** The fields that are wrong, or the files and lines of a skill. */
  public List<Violation> violations() {
    return told.violations();
  }

  /** What the server adds, such as {@code skill_id}. */
  public Map<String, String> facts() {
    return told.facts();
  }

  /** How long to wait before another call; zero: nothing was said. */
  public Duration retryAfter() {
    return told.retryAfter();
  }

  /** The code of gRPC. */
  public Status.Code status() {
    return told.status();
  }

  /** The server gave it its code. */
  boolean isNamed() {
    return told.named();
  }

  /** What a failed call of a generated stub says. */
  public static RepertoireException of(StatusRuntimeException error) {
    return of(error.getStatus(), error.getTrailers(), error);
  }

  static RepertoireException of(Status told, Metadata trailers, Throwable cause) {
    Status status = isCutOff(told) ? Status.UNAVAILABLE.withDescription(told.getDescription()) : told;
    String code = "";
    Map<String, String> facts = Map.of();
    List<String> next = new ArrayList<>();
    List<Violation> violations = new ArrayList<>();
    Duration after = retryAfter(trailers);
    try {
      for (Any detail : StatusProto.fromStatusAndTrailers(status, trailers).getDetailsList()) {
        if (detail.is(ErrorInfo.class)) {
          code = detail.unpack(ErrorInfo.class).getReason();
          facts = Map.copyOf(detail.unpack(ErrorInfo.class).getMetadataMap());
        } else if (detail.is(Help.class)) {
          detail.unpack(Help.class).getLinksList().forEach(link -> next.add(link.getDescription()));
        } else if (detail.is(BadRequest.class)) {
          for (BadRequest.FieldViolation wrong : detail.unpack(BadRequest.class).getFieldViolationsList()) {
            violations.add(new Violation(wrong.getField(), wrong.getDescription()));
          }
        } else if (detail.is(RetryInfo.class)) {
          com.google.protobuf.Duration delay = detail.unpack(RetryInfo.class).getRetryDelay();
          after = Duration.ofSeconds(delay.getSeconds(), delay.getNanos());
        }
      }
    } catch (InvalidProtocolBufferException notOfThisServer) {
      // What a proxy adds says nothing; the status itself does.
      code = "";
    }
    boolean named = !code.isEmpty();
    code = named ? code : unnamed(status.getCode());
    String message = status.getDescription() == null ? status.getCode().toString() : status.getDescription();
    if (!named && status.getCause() != null && status.getCause().getMessage() != null) {
      message += ": " + status.getCause().getMessage();
    }
    if (next.isEmpty() && code.equals("SERVER_UNREACHABLE")) {
      next.add("Check that the server is running and that its address is right");
    }
    return kind(
        new Told(
            code, message, List.copyOf(next), List.copyOf(violations), facts, after, status.getCode(), named, cause));
  }

  /** The connection ended under the call, for which gRPC has no status of its own. */
  private static boolean isCutOff(Status status) {
    return status.getCode() == Status.Code.UNKNOWN && status.getCause() instanceof ClosedChannelException;
  }

  /** An error of this side, in the form of the server's. */
  static RepertoireException local(String code, Status.Code status, String message, Throwable cause, String... next) {
    return kind(
        new Told(code, message, List.of(next), List.of(), Map.of(), Duration.ZERO, status, true, cause));
  }

  static RepertoireException invalid(String message, String... next) {
    return local("INVALID_PARAMETER", Status.Code.INVALID_ARGUMENT, message, null, next);
  }

  private static RepertoireException kind(Told told) {
    if (CONFLICTS.contains(told.code())) {
      return new ConflictException(told);
    }
    return switch (told.status()) {
      case NOT_FOUND -> new NotFoundException(told);
      case INVALID_ARGUMENT, FAILED_PRECONDITION, OUT_OF_RANGE -> new RefusedException(told);
      case ABORTED, ALREADY_EXISTS -> new ConflictException(told);
      case PERMISSION_DENIED, UNAUTHENTICATED -> new DeniedException(told);
      case UNAVAILABLE, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED -> new UnavailableException(told);
      default -> new RepertoireException(told);
    };
  }

  /** The code of a status that came without one: of a proxy, or of this side. */
  private static String unnamed(Status.Code status) {
    return switch (status) {
      case INVALID_ARGUMENT, OUT_OF_RANGE -> "INVALID_PARAMETER";
      case DEADLINE_EXCEEDED, CANCELLED -> "TIMEOUT";
      case RESOURCE_EXHAUSTED -> "OVERLOADED";
      case UNAVAILABLE -> "SERVER_UNREACHABLE";
      default -> "INTERNAL_ERROR";
    };
  }

  /** What a proxy says that speaks HTTP alone. */
  private static Duration retryAfter(Metadata trailers) {
    String seconds = trailers == null ? null : trailers.get(RETRY_AFTER);
    return seconds != null && seconds.matches("\\d{1,5}")
        ? Duration.ofSeconds(Long.parseLong(seconds))
        : Duration.ZERO;
  }
}
