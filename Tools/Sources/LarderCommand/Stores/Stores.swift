import Larder
import LarderJSON
import LarderLMDB

/// The stores that the tool can open.
enum Stores {
  /// The kinds of store.
  ///
  /// The rest of the tool knows nothing of them.
  static let registry = StoreRegistry(providers: [
    MemoryStoreProvider(), JSONFileStoreProvider(), LMDBStoreProvider(),
  ])

  /// Opens a store, with the codec that it was written with.
  ///
  /// - Parameters:
  ///   - url: Where it is.
  ///   - createsIfMissing: Whether it is made where it is missing.
  /// - Throws: ``CommandFailure`` where there is no such kind of store; what the store throws on opening.
  static func open(_ url: String, createsIfMissing: Bool) async throws -> AnyDataStore<JSONText> {
    let url = try StoreURL(url)
    guard registry.providers.contains(where: { $0.scheme == url.scheme }) else {
      let known = registry.providers.map { "\($0.scheme):" }.joined(separator: ", ")
      throw CommandFailure(.usage, "no kind of store has the scheme \(url.scheme):", advice: "There is \(known).")
    }
    return try await registry.open(url, options: StoreOptions(createsIfMissing: createsIfMissing)) { name in
      ValueCodecs.codec(named: name)
    }
  }

  /// The kinds of store for the help, one per line.
  static var listing: String {
    registry.providers.map { provider in
      let scheme = "\(provider.scheme):"
      return "  \(scheme)\(String(repeating: " ", count: max(1, 10 - scheme.count)))\(provider.summary)"
    }.joined(separator: "\n")
  }
}
