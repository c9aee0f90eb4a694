import ExampleSupport
import Larder
import LarderBatching
import LarderCBOR
import LarderCache
import LarderExpiry
import LarderMetrics

/// The store of a catalog with all decorators of Larder, and metrics on both sides.
struct CatalogStack {
  /// From the inside out: the store, metrics, batching, a cache, expiry, and metrics again.
  typealias Store = MeteredStore<
    ExpiringStore<CachedStore<BatchingStore<MeteredStore<AnyDataStore<Expiring<FileRecord>>>>>, FileRecord>
  >

  /// The time to live of a record.
  ///
  /// After it the record is absent, and the next walk through the folder writes it again.
  static let timeToLive = Duration.seconds(30 * 86_400)

  /// The meter outside of the stack.
  let asked = StoreMeter(name: "calls of the stack", logger: nil)

  /// The meter next to the store.
  let arrived = StoreMeter(name: "calls of the store", logger: nil)

  private let registry: StoreRegistry

  /// Creates a stack without a store.
  ///
  /// - Parameter registry: The available kinds of stores.
  init(registry: StoreRegistry) {
    self.registry = registry
  }

  /// Opens a store and decorates it.
  ///
  /// The meters continue from one store to the next.
  func open(_ url: String) async throws -> Store {
    let url = try StoreURL(url)
    // With the usual codec of each kind of store.
    let stored =
      if url.scheme == "lmdb" {
        try await registry.open(url, codec: .cbor(FileRecord.self).expiring())
      } else {
        try await registry.open(url, codec: .json(FileRecord.self).expiring())
      }
    return stored.metered(by: arrived).batched().cached().expiring(.after(Self.timeToLive)).metered(by: asked)
  }

  /// The operations of the stack next to those that reached the store, with a row for each kind of operation.
  var report: TextTable {
    let (asked, arrived) = (asked.report(), arrived.report())
    var table = TextTable(alignments: [.left, .right, .right, .right, .right, .right, .right])
    table.append(["", asked.store, "mean", "p99", arrived.store, "mean", "p99"])
    let names = asked.operations.map(\.name)
    for name in names + arrived.operations.map(\.name).filter({ !names.contains($0) }) {
      table.append([name] + cells(of: asked[name]) + cells(of: arrived[name]))
    }
    return table
  }

  /// The effect of the cache and of group commit in three sentences, or `nil` before there were reads and writes.
  var conclusion: String? {
    let (asked, arrived) = (asked.report(), arrived.report())
    guard let reads = asked["value"], let writes = asked["apply"], let commits = arrived["apply"] else { return nil }
    let loads = arrived["value"]?.count ?? 0
    let share = Double(reads.count - loads) / Double(max(1, reads.count)) * 100
    return """
      \(Int(share.rounded())) % of \(TextFormat.count(reads.count)) reads came from memory.
      \(TextFormat.count(writes.count)) writes became \(TextFormat.count(commits.count)) commits.
      A read took \(TextFormat.duration(reads.mean)) on average, and a write \(TextFormat.duration(writes.mean)).
      """
  }

  private func cells(of report: OperationReport?) -> [String] {
    guard let report else { return ["0", "", ""] }
    return [
      TextFormat.count(report.count), TextFormat.duration(report.mean),
      TextFormat.duration(report.percentile99),
    ]
  }
}
