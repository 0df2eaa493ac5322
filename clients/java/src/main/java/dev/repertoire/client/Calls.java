package dev.repertoire.client;

import com.google.api.AnnotationsProto;
import com.google.api.HttpRule;
import com.google.protobuf.DescriptorProtos.MethodOptions;
import dev.repertoire.v1.LookupGrpc;
import dev.repertoire.v1.Options;
import dev.repertoire.v1.ToolOption;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Status;
import io.grpc.protobuf.ProtoMethodDescriptorSupplier;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/**
 * Gives every call a deadline and the client's headers, and repeats it while that is safe. The
 * policy that gRPC has for this knows neither codes nor RetryInfo.
 */
final class Calls implements ClientInterceptor {
  private final Metadata headers;
  private final Duration timeout;
  private final ScheduledExecutorService timer;
  /** Has the connection tried again at once. */
  private final Runnable reconnect;
  /** Those that wait for their next attempt. */
  private final Set<Repeated<?, ?>> pausing = ConcurrentHashMap.newKeySet();

  Calls(Metadata headers, Duration timeout, ScheduledExecutorService timer, Runnable reconnect) {
    this.headers = headers;
    this.timeout = timeout;
    this.timer = timer;
    this.reconnect = reconnect;
  }

  @Override
  public <Q, A> ClientCall<Q, A> interceptCall(MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
    if (method.getType() != MethodType.UNARY) {
      // A stream may be endless, and cannot be repeated from outside.
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void start(Listener<A> listener, Metadata own) {
          super.start(listener, withHeaders(own));
        }
      };
    }
    Deadline limit = options.getDeadline();
    Deadline outer = Context.current().getDeadline();
    if (limit == null && outer == null) {
      limit = Deadline.after(timeout.toMillis(), TimeUnit.MILLISECONDS);
    } else if (limit == null || outer != null && outer.isBefore(limit)) {
      limit = outer;
    }
    return new Repeated<>(method, options.withDeadline(limit), limit, next);
  }

  /** Has those that wait fail at once, once the connection is closed. */
  void close() {
    pausing.forEach(Repeated::again);
  }

  private Metadata withHeaders(Metadata own) {
    Metadata all = new Metadata();
    all.merge(own);
    all.merge(headers);
    return all;
  }

  /**
   * Calling twice does what calling once does. The contract says so of most methods: what HTTP
   * gets, or a tool that changes nothing, or nothing more.
   */
  static boolean isRepeatable(MethodDescriptor<?, ?> method) {
    // A session that nobody uses ends by itself.
    if (method.getFullMethodName().equals(LookupGrpc.getLoadSkillMethod().getFullMethodName())) {
      return true;
    }
    if (!(method.getSchemaDescriptor() instanceof ProtoMethodDescriptorSupplier described)) {
      return false;
    }
    MethodOptions options = described.getMethodDescriptor().getOptions();
    List<ToolOption> tools = options.getExtension(Options.tool);
    return options.getExtension(AnnotationsProto.http).getPatternCase() == HttpRule.PatternCase.GET
        || !tools.isEmpty() && tools.stream().allMatch(Calls::isHarmless);
  }

  private static boolean isHarmless(ToolOption tool) {
    return tool.getReadOnly() || tool.getIdempotent();
  }

  /** A unary call, as often as it takes. */
  private final class Repeated<Q, A> extends ClientCall<Q, A> {
    private final MethodDescriptor<Q, A> method;
    private final CallOptions options;
    private final Deadline limit;
    private final Channel channel;
    /** That of the caller, which every attempt is made in. */
    private final Context context = Context.current();

    private Listener<A> listener;
    private Metadata own;
    private ClientCall<Q, A> attempt;
    private ScheduledFuture<?> waiting;
    private int attempts;
    private int requested;
    private Q message;
    private boolean halfClosed;
    private boolean over;

    Repeated(MethodDescriptor<Q, A> method, CallOptions options, Deadline limit, Channel channel) {
      this.method = method;
      this.options = options;
      this.limit = limit;
      this.channel = channel;
    }

    @Override
    public synchronized void start(Listener<A> listener, Metadata own) {
      this.listener = listener;
      this.own = own;
      begin();
    }

    private synchronized void begin() {
      if (over) {
        // Cancelled a moment ago, when nothing was under way.
        listener.onClose(Status.CANCELLED, new Metadata());
        return;
      }
      waiting = null;
      attempts++;
      attempt = channel.newCall(method, options);
      attempt.start(new Answers(), withHeaders(own));
      if (requested > 0) {
        attempt.request(requested);
      }
      if (message != null) {
        attempt.sendMessage(message);
      }
      if (halfClosed) {
        attempt.halfClose();
      }
    }

    private void again() {
      if (pausing.remove(this)) {
        reconnect.run();
        context.run(this::begin);
      }
    }

    /** Whether there is another attempt; then it is under way. */
    private synchronized boolean repeats(Status status, Metadata trailers) {
      if (over || attempts == Backoff.ATTEMPTS) {
        return false;
      }
      RepertoireException error = RepertoireException.of(status, trailers, null);
      long wait = Backoff.pause(attempts - 1, error.retryAfter()).toMillis();
      if (!Backoff.isWorthARetry(error, isRepeatable(method)) || limit.timeRemaining(TimeUnit.MILLISECONDS) <= wait) {
        return false;
      }
      pausing.add(this);
      try {
        waiting = timer.schedule(this::again, wait, TimeUnit.MILLISECONDS);
        return true;
      } catch (RejectedExecutionException closed) {
        pausing.remove(this);
        return false;
      }
    }

    @Override
    public synchronized void request(int messages) {
      requested += messages;
      attempt.request(messages);
    }

    @Override
    public synchronized void sendMessage(Q message) {
      this.message = message;
      attempt.sendMessage(message);
    }

    @Override
    public synchronized void halfClose() {
      halfClosed = true;
      attempt.halfClose();
    }

    @Override
    public void cancel(String why, Throwable cause) {
      boolean waited;
      synchronized (this) {
        over = true;
        waited = waiting != null && waiting.cancel(false) && pausing.remove(this);
        if (!waited && attempt != null) {
          attempt.cancel(why, cause);
        }
      }
      if (waited) {
        listener.onClose(Status.CANCELLED.withDescription(why).withCause(cause), new Metadata());
      }
    }

    /** What an attempt comes to. Headers wait: an attempt that fails may have some. */
    private final class Answers extends ClientCall.Listener<A> {
      private Metadata headers;
      private boolean answered;

      @Override
      public void onHeaders(Metadata headers) {
        this.headers = headers;
      }

      @Override
      public void onMessage(A answer) {
        tellHeaders();
        answered = true;
        listener.onMessage(answer);
      }

      @Override
      public void onClose(Status status, Metadata trailers) {
        if (!status.isOk() && !answered && repeats(status, trailers)) {
          return;
        }
        tellHeaders();
        listener.onClose(status, trailers);
      }

      @Override
      public void onReady() {
        listener.onReady();
      }

      private void tellHeaders() {
        if (headers != null) {
          listener.onHeaders(headers);
          headers = null;
        }
      }
    }
  }
}
