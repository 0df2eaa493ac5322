package dev.repertoire.client;

import io.grpc.ChannelCredentials;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Status;
import io.grpc.TlsChannelCredentials;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;

/** Where a server is, and whether what goes there is encrypted. */
record Address(String said, String host, int port, boolean encrypted) {
  private static final String FORM = "Write it as https://HOST, http://HOST:PORT, or HOST:PORT";

  static Address parse(String said) {
    if (said.contains("@")) {
      // It is not repeated: a log may have it.
      throw RepertoireException.invalid(
          "the address of the server has a user or a password", "A token goes into REPERTOIRE_TOKEN or token()", FORM);
    }
    URI uri;
    try {
      uri = new URI(said.contains("://") ? said : "http://" + said);
    } catch (URISyntaxException error) {
      throw wrong(said, "");
    }
    if (uri.getHost() == null) {
      throw wrong(said, "");
    }
    boolean encrypted = "https".equalsIgnoreCase(uri.getScheme());
    if (!encrypted && !"http".equalsIgnoreCase(uri.getScheme())) {
      throw wrong(said, ": it begins with neither http:// nor https://");
    }
    if (!uri.getPath().replace("/", "").isEmpty() || uri.getQuery() != null || uri.getFragment() != null) {
      throw wrong(said, ": gRPC has no paths below a host");
    }
    if (uri.getPort() < 0 && !said.contains("://")) {
      throw wrong(said, ": it has no port");
    }
    int port = uri.getPort() >= 0 ? uri.getPort() : encrypted ? 443 : 80;
    return new Address(said, uri.getHost(), port, encrypted);
  }

  private static RepertoireException wrong(String said, String why) {
    return RepertoireException.invalid("`" + said + "` is not the address of a server" + why, FORM);
  }

  /** What gRPC dials. */
  String target() {
    return host + ":" + port;
  }

  /** What is sent there stays on this machine. */
  boolean isLocal() {
    String bare = host.replaceAll("[\\[\\]]", "");
    return bare.equals("localhost") || bare.matches("127(\\.\\d{1,3}){3}") || bare.matches("(0*:)+0*1");
  }

  /** TLS, or none; the authorities of a file are trusted beside those of Java. */
  ChannelCredentials credentials(Path authorities) {
    if (!encrypted) {
      return InsecureChannelCredentials.create();
    }
    if (authorities == null) {
      return TlsChannelCredentials.create();
    }
    try (InputStream pem = Files.newInputStream(authorities)) {
      KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
      trusted.load(null, null);
      int number = 0;
      for (X509Certificate certificate : ofJava()) {
        trusted.setCertificateEntry("java-" + number++, certificate);
      }
      int before = number;
      for (Certificate certificate : CertificateFactory.getInstance("X.509").generateCertificates(pem)) {
        trusted.setCertificateEntry("file-" + number++, certificate);
      }
      if (number == before) {
        throw RepertoireException.invalid(authorities + " has no certificate in PEM");
      }
      return TlsChannelCredentials.newBuilder().trustManager(managers(trusted)).build();
    } catch (IOException error) {
      throw RepertoireException.local(
          "LOCAL_FILE_FAILED", Status.Code.FAILED_PRECONDITION, authorities + " cannot be read: " + error, error);
    } catch (GeneralSecurityException error) {
      throw RepertoireException.invalid(authorities + " has no certificates in PEM: " + error.getMessage());
    }
  }

  private static X509Certificate[] ofJava() throws GeneralSecurityException {
    for (TrustManager manager : managers(null)) {
      if (manager instanceof X509TrustManager trusting) {
        return trusting.getAcceptedIssuers();
      }
    }
    return new X509Certificate[0];
  }

  private static TrustManager[] managers(KeyStore trusted) throws GeneralSecurityException {
    TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    factory.init(trusted);
    return factory.getTrustManagers();
  }
}
