public import ArgumentParser
import Foundation
import Hummingbird
import HummingbirdCore
import HummingbirdTLS
import Larder
public import LarderHTTPCache
import LarderInspector
import Logging
import NIOSSL
import StoreAccess

extension HTTPCacheMode: @retroactive ExpressibleByArgument {}

/// The program `larder-inspect`.
@main
struct InspectCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "larder-inspect",
    abstract: "Show stores and queues in a browser.",
    discussion: """
      Prints the address of a page that shows the stores. The address works once, in one browser, and only on this machine. \
      Stores are opened for reading; with --write, the page can change them. The program runs until it is interrupted.

        larder inspect json:users.json sqlite:shop.sqlite#users
        larder inspect lmdb:shop --queue jobs/ --write
        larder inspect lmdb:proxy --http-cache http/
        larder inspect queue:outbox --port 8061
        larder inspect json:damaged.json --salvage-to json:rescued.json

      To inspect the stores of another machine, forward a port, as in \
      ssh -L 8061:127.0.0.1:8061 server larder inspect queue:outbox --port 8061. An address that other machines reach needs \
      TLS, a password, and the names under which browsers reach it:

        larder inspect queue:outbox --address 0.0.0.0 --port 8061 --host stores.example.com \
          --certificate chain.pem --private-key key.pem --login-password-file password
      """)

  @Argument(help: ArgumentHelp("The stores, such as json:users.json.", valueName: "url")) var urls: [String]
  @Option(
    help: ArgumentHelp("The prefix of a queue in the store, such as jobs/. It can be repeated.", valueName: "prefix"))
  var queue: [String] = []
  @Option(
    help: ArgumentHelp(
      "The prefix of an HTTP cache in the store, such as http/. It can be repeated.", valueName: "prefix"))
  var httpCache: [String] = []
  @Option(help: "The kind of the HTTP caches: shared, or private, which ignores s-maxage.") var httpMode =
    HTTPCacheMode.shared
  @Flag(help: "Allow the page to change the stores, each time after a confirmation.") var write = false
  @Option(
    help: ArgumentHelp(
      "A new store to which a page can copy the readable entries of a damaged one, which stays as it is.",
      valueName: "url"))
  var salvageTo: String?
  @Option(help: "The port. By default, the system chooses a free one.") var port = 0
  @Option(
    help: ArgumentHelp(
      "The address to listen at, which other machines reach only with TLS and a password.", valueName: "address"))
  var address = "127.0.0.1"
  @OptionGroup(title: "For other machines") var remote: RemoteOptions
  @Option(help: .codec) var codec: StoreCodec?
  @OptionGroup var opening: OpeningOptions

  mutating func validate() throws {
    guard !urls.isEmpty else { throw ValidationError("give at least one store, such as json:users.json") }
    guard queue.isEmpty || urls.count == 1 else { throw ValidationError("--queue needs exactly one store") }
    guard httpCache.isEmpty || urls.count == 1 else { throw ValidationError("--http-cache needs exactly one store") }
    guard !httpCache.contains("") else {
      throw ValidationError("--http-cache is empty; give the prefix of the cache's keys")
    }
    guard !queue.contains("") else { throw ValidationError("--queue is empty; give the prefix of the queue's keys") }
    guard (0...65535).contains(port) else { throw ValidationError("--port must be at most 65535, not \(port)") }
    try remote.check(isLoopback: ["127.0.0.1", "::1", "localhost"].contains(address), address)
    urls = try urls.map { try ConfiguredStacks.url($0) }
    guard let salvageTo else { return }
    guard urls.count == 1, queue.isEmpty, httpCache.isEmpty else {
      throw ValidationError("--salvage-to needs exactly one store, without a queue or an HTTP cache in it")
    }
    guard !write else {
      throw ValidationError("--salvage-to leaves the damaged store as it is, so it excludes --write")
    }
    let target = try ConfiguredStacks.url(salvageTo)
    guard try StoreURL(urls[0]) != StoreURL(target) else {
      throw ValidationError("a store cannot be salvaged into itself; give one that does not exist yet")
    }
    self.salvageTo = target
  }

  static func main() async {
    Descriptor.reserveStandardStreams()
    Descriptor.ignorePipeSignal()
    LoggingSystem.bootstrap { StreamLogHandler.standardError(label: $0) }
    do {
      let arguments = try ConfiguredStacks.take(from: Array(CommandLine.arguments.dropFirst()))
      // Help and the scripts of shells are commands of the argument parser.
      var command = try parseAsRoot(arguments)
      if var inspection = command as? InspectCommand {
        try await inspection.run()
      } else {
        try command.run()
      }
    } catch let failure as CommandFailure {
      end(failure)
    } catch let error as StoreError {
      end(CommandFailure(error))
    } catch  where exitCode(for: error) == .success {
      exit(withError: error)
    } catch {
      end(CommandFailure(.usage, message(for: error), advice: "See `larder inspect --help`."))
    }
  }

  private static func end(_ failure: CommandFailure) -> Never {
    Diagnostics.writeLine("larder-inspect: \(failure.message)")
    exit(withError: ExitCode(failure.status.rawValue))
  }

  mutating func run() async throws {
    var stores: [InspectedStore] = []
    var opened: [any DataStore] = []
    for url in urls {
      var target = opening.target(url, codec: CodecChoice(codec: codec))
      // So that damage in an LMDB environment can be met.
      target.examinesPages = salvageTo != nil
      let salvage = salvageTo.map {
        opening.target($0, sharingKeysOf: target, codec: CodecChoice(codec: codec))
      }
      let store = try await InspectedTarget(
        target, queues: queue, httpCaches: httpCache, httpMode: httpMode, isWritable: write, salvage: salvage)
      stores += store.stores
      opened += store.opened
    }
    let router = Router()
    let session = try remote.session()
    // A store that is open for reading is not changed in any case.
    Inspector(stores, allowsChanges: write || salvageTo != nil, hosts: remote.host).addRoutes(
      to: router, session: session)
    var logger = Logger(label: "larder-inspect")
    logger.logLevel = .notice
    let host = remote.host.first ?? (address == "::1" ? "[::1]" : address)
    let scheme = remote.certificate == nil ? "http" : "https"
    let application = Application(
      router: router, server: try remote.server(),
      configuration: ApplicationConfiguration(address: .hostname(address, port: port)),
      onServerRunning: { channel in
        let port = channel.localAddress?.port ?? 0
        print("\(scheme)://\(host):\(port)/?token=\(session.token)")
        Diagnostics.writeLine("Open this address in a browser. It works once. Press Control-C to end the program.")
        // The output may be a pipe, whose reader waits for the address.
        fflush(nil)
      }, logger: logger)
    try await application.runService()
    for store in opened { try await store.close() }
  }
}

/// The options of an address that other machines reach.
struct RemoteOptions: ParsableArguments {
  @Option(help: ArgumentHelp("A name under which browsers reach the program. It can be repeated.", valueName: "name"))
  var host: [String] = []
  @Option(help: ArgumentHelp("A file with the chain of certificates in PEM.", valueName: "path")) var certificate:
    String?
  @Option(help: ArgumentHelp("A file with the key of the certificate in PEM.", valueName: "path")) var privateKey:
    String?
  @Option(
    help: ArgumentHelp("A file whose first line is the password with which other browsers log in.", valueName: "path"))
  var loginPasswordFile: String?

  /// Checks that the options are complete.
  ///
  /// - Throws: `ValidationError`.
  func check(isLoopback: Bool, _ address: String) throws {
    guard (certificate == nil) == (privateKey == nil) else {
      throw ValidationError("--certificate and --private-key belong together; give both")
    }
    guard !isLoopback else { return }
    let missing = [
      (certificate == nil, "--certificate and --private-key"), (loginPasswordFile == nil, "--login-password-file"),
      (host.isEmpty, "--host"),
    ].filter(\.0).map(\.1)
    guard missing.isEmpty else {
      throw ValidationError(
        "\(address) is not a loopback address; other machines could read the stores. Give \(missing.joined(separator: ", ")) as well"
      )
    }
  }

  /// Returns the sessions of browsers.
  ///
  /// - Throws: ``CommandFailure`` if the password cannot be read or is too short.
  func session() throws -> InspectorSession {
    guard let loginPasswordFile else { return InspectorSession() }
    let text: String
    do {
      text = try String(contentsOfFile: loginPasswordFile, encoding: .utf8)
    } catch {
      throw CommandFailure(.noInput, "cannot read the password in \(loginPasswordFile): \(error.localizedDescription)")
    }
    let password = text.prefix { !$0.isNewline }
    do {
      return try InspectorSession(password: String(password), isSecure: certificate != nil)
    } catch let error as StoreError {
      throw CommandFailure(.usage, error.message, advice: "The first line of \(loginPasswordFile) is the password.")
    }
  }

  /// Returns the server, with TLS if there is a certificate.
  ///
  /// - Throws: ``CommandFailure`` if the certificate or its key cannot be read.
  func server() throws -> HTTPServerBuilder {
    guard let certificate, let privateKey else { return .http1() }
    do {
      let chain = try NIOSSLCertificate.fromPEMFile(certificate).map { NIOSSLCertificateSource.certificate($0) }
      let key = try NIOSSLPrivateKey(file: privateKey, format: .pem)
      return try .tls(
        .http1(),
        tlsConfiguration: .makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(key)))
    } catch {
      throw CommandFailure(.noInput, "cannot use the certificate in \(certificate) with its key: \(error)")
    }
  }
}
