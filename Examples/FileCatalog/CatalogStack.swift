import ExampleSupport
import Larder
import LarderBatching
import LarderCBOR
import LarderCache
import LarderExpiry
import LarderMetrics

/// The store of a catalogue with everything in front of it that Larder has, measured on either side.
struct CatalogStack {
  /// From the inside out: the store, metrics, batching, a cache, expiry, and metrics again.
  typealias Store = MeteredStore<
    ExpiringStore<CachedStore<BatchingStore<MeteredStore<AnyDataStore<Expiring<FileRecord>>>>>, FileRecord>
  >

  /// How long a record is believed once it is written; behind that it is absent, and made anew when the folder is walked.
  static let lifetime = Duration.seconds(30 * 86_400)

  /// What is asked of the stack.
  let asked = StoreMeter(name: "asked of the stack", logger: nil)

  /// What of it comes to the store.
  let arrived = StoreMeter(name: "come to the store", logger: nil)

  private let registry: StoreRegistry

  /// Makes a stack without a store.
  ///
  /// - Parameter registry: The kinds of store there are.
  init(registry: StoreRegistry) {
    self.registry = registry
  }

  /// Opens a store and puts everything in front of it; the meters go on counting from one store to the next.
  func open(_ url: String) async throws -> Store {
    // As each kind of store has it by default, or as the store was made.
    let stored = try await registry.open(StoreURL(url)) { name in
      name.hasPrefix("cbor") ? .cbor(FileRecord.self).expiring() : .json(FileRecord.self).expiring()
    }
    return stored.metered(by: arrived).batched().cached().expiring(.after(Self.lifetime)).metered(by: asked)
  }

  /// What was asked of the stack beside what of it came to the store, a row for each kind of operation.
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

  private func cells(of report: OperationReport?) -> [String] {
    guard let report else { return ["0", "", ""] }
    return [
      TextFormat.count(report.count), TextFormat.duration(report.mean),
      TextFormat.duration(report.percentile99),
    ]
  }
}
