import ArgumentParser
import Foundation
import HTTPTypes
import HummingbirdCore
import Larder
import LarderCache
import LarderCompressedFile
import LarderHTTPCache
import LarderJSON
import LarderLMDB
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import UnixSignals

@main
struct CachingProxyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "CachingProxy",
    abstract: "A shared cache of HTTP responses in front of a server.",
    discussion: """
      The proxy stores the responses of the server as RFC 9111 allows, and answers later requests from the store. The \
      field Cache-Status of a response says how it was answered. If the server cannot be reached, stale responses are \
      used where their fields allow it.

      The proxy removes the fields of requests by which one client could choose what the server answers to all others, \
      because they are in no key of the cache: Forwarded, X-Forwarded-*, X-Host, X-HTTP-Host-Override, X-HTTP-Method, \
      X-HTTP-Method-Override, X-Method-Override, X-Original-Host, X-Original-Method, X-Original-URL and X-Rewrite-URL. A \
      request with several Host fields, or none in HTTP/1.1, is refused with 400.
      """)

  @Option(help: "The URL of the server, such as http://127.0.0.1:8000.")
  var origin: String

  @Option(help: "The port to listen on, or an address and a port, such as 0.0.0.0:8080.")
  var listen = "8080"

  @Option(help: "The store of the responses: memory:, lmdb:PATH, json:PATH or compressed:PATH.")
  var store = "memory:"

  @Option(help: "The number of bytes of the store that are kept in memory too.")
  var memory = 0

  @Option(help: "The maximum size of the stored responses in bytes.")
  var capacity = 100_000_000

  @Option(help: "The kind of cache: shared by many users, or private to one, in a client of AsyncHTTPClient.")
  var mode = HTTPCacheMode.shared.rawValue

  @Option(help: "A field that this cache obeys instead of Cache-Control, such as CDN-Cache-Control. Can be repeated.")
  var targeted: [String] = []

  @Option(help: "Which responses with Set-Cookie are stored: never, ifPublic, ifFresh or always. (default: by mode)")
  var setCookie: String?

  @Option(help: "How long to wait for the server, in seconds.")
  var timeout = 30

  func validate() throws {
    guard capacity >= 1 else { throw ValidationError("--capacity must be at least 1") }
    guard memory >= 0 else { throw ValidationError("--memory must be at least 0") }
    guard timeout >= 1 else { throw ValidationError("--timeout must be at least 1") }
    _ = try (makeOrigin(), address(), cacheMode(), targetedFields(), cookieStoring())
  }

  func run() async throws {
    let store = try await openStore()
    let cache = try await HTTPCache(store, configuration: try cacheConfiguration())
    let upstream = upstream(cache, try makeOrigin())
    do {
      try await serve(cache, upstream)
    } catch {
      try await upstream.shutdown()
      throw error
    }
    try await upstream.shutdown()
    try await store.close()
  }

  private func serve(_ cache: HTTPCache, _ upstream: Proxy.Upstream) async throws {
    let proxy = Proxy(upstream: upstream)
    let (host, port) = try address()
    var logger = Logger(label: "CachingProxy")
    // The status line would be torn by others.
    logger.logLevel = .warning
    let server = ClientChannel(responder: proxy.respond, idleTimeout: .seconds(timeout))
      .server(
        configuration: ServerConfiguration(address: .hostname(host, port: port), backlog: 1024),
        onServerRunning: { [origin] channel in
          // Not `print`, which keeps the line back if the output is a pipe.
          let line = "listening on \(host):\(channel.localAddress?.port ?? port), in front of \(origin)\n"
          FileHandle.standardOutput.write(Data(line.utf8))
        },
        eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: logger)
    try await withThrowingDiscardingTaskGroup { group in
      group.addTask { await cache.run() }
      group.addTask { await StatusLine().run { cache.statistics() } }
      try await ServiceGroup(services: [server], gracefulShutdownSignals: [.sigint, .sigterm], logger: logger).run()
      group.cancelAll()
    }
  }

  /// Returns the way to the origin: a private cache is in a client, as a program has it.
  private func upstream(_ cache: HTTPCache, _ origin: Origin) -> Proxy.Upstream {
    switch cache.configuration.mode {
    case .shared: .connections(origin, cache)
    case .private:
      .client(ClientOrigin(authority: origin.authority, cache: cache, timeout: .seconds(timeout)))
    }
  }

  private func openStore() async throws -> AnyDataStore<[UInt8]> {
    let registry = StoreRegistry(providers: [
      MemoryStoreProvider(), LMDBStoreProvider(), JSONFileStoreProvider(), CompressedFileStoreProvider(),
    ])
    // A cache that loses the latest responses at a power failure has nothing to repair.
    let store = try await registry.open(self.store, codec: .raw, options: StoreOptions(durability: .buffered))
    guard memory > 0 else { return store }
    return AnyDataStore(store.cached(CachedStoreConfiguration(costLimit: memory) { $1.count }))
  }

  private func makeOrigin() throws -> Origin {
    guard let url = URLComponents(string: origin), url.scheme?.lowercased() == "http", let host = url.host,
      !host.isEmpty, url.user == nil, ["", "/"].contains(url.path), url.query == nil
    else {
      throw ValidationError("--origin must be a URL such as http://127.0.0.1:8000, without a path")
    }
    return Origin(host: host, port: url.port ?? 80, timeout: .seconds(timeout))
  }

  private func address() throws -> (host: String, port: Int) {
    let colon = listen.lastIndex(of: ":")
    guard let port = UInt16(colon.map { listen[listen.index(after: $0)...] } ?? listen[...]) else {
      throw ValidationError("--listen must be a port, or an address and a port, such as 127.0.0.1:8080")
    }
    let host = colon.map { listen[..<$0].trimmingCharacters(in: CharacterSet(charactersIn: "[]")) }
    return (host ?? "127.0.0.1", Int(port))
  }

  /// Returns the configuration of the cache that the options describe.
  func cacheConfiguration() throws -> HTTPCacheConfiguration {
    var configuration = HTTPCacheConfiguration(mode: try cacheMode())
    configuration.capacity = capacity
    configuration.targetedFields = try targetedFields()
    configuration.setCookieStoring = try cookieStoring()
    configuration.name = "CachingProxy"
    return configuration
  }

  private func cacheMode() throws -> HTTPCacheMode {
    guard let mode = HTTPCacheMode(rawValue: mode) else { throw ValidationError("--mode must be shared or private") }
    return mode
  }

  private func cookieStoring() throws -> SetCookieStoring? {
    try setCookie.map { text in
      guard let storing = SetCookieStoring(rawValue: text) else {
        throw ValidationError("--set-cookie must be never, ifPublic, ifFresh or always")
      }
      return storing
    }
  }

  private func targetedFields() throws -> [HTTPField.Name] {
    try targeted.map { name in
      guard let field = HTTPField.Name(name) else { throw ValidationError("--targeted must be the name of a field") }
      return field
    }
  }
}
