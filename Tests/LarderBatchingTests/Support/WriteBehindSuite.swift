import Larder
import LarderTesting

@testable import LarderBatching

/// A suite whose tests write behind a store that refuses writes on demand, by a manual clock.
protocol WriteBehindSuite {
  var clock: ManualClock { get }
  var base: FaultyStore<PickyStore<Int>> { get }
}

extension WriteBehindSuite {
  var picky: PickyStore<Int> { base.base }

  func store(
    bounds: BatchBounds<Int> = BatchBounds(), retries: WriteBehindRetryPolicy = WriteBehindRetryPolicy()
  ) -> WriteBehindStore<FaultyStore<PickyStore<Int>>> {
    base.writeBehind(bounds: bounds, maximumAge: .seconds(1), retries: retries, clock: clock)
  }

  /// The entries that were written.
  func contents() throws -> [StoreKey: Int] {
    let entries = try picky.entries(in: .all, limit: .max, order: .ascending)
    return Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
  }
}
