import Larder
import LarderJSON

/// The stores that the tool can open.
enum Stores {
  /// The kinds of store.
  ///
  /// The rest of the tool knows nothing of them.
  static let registry = StoreRegistry(providers: [MemoryStoreProvider(), JSONFileStoreProvider()])

  /// The kinds of store for the help, one per line.
  static var listing: String {
    registry.providers.map { provider in
      let scheme = "\(provider.scheme):"
      return "  \(scheme)\(String(repeating: " ", count: max(1, 10 - scheme.count)))\(provider.summary)"
    }.joined(separator: "\n")
  }
}
