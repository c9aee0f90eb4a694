#if LMDB
import Larder

extension RawDatabase {
  /// The first keys of a range.
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    guard limit > 0 else { return [] }
    var keys: [StoreKey] = []
    var scan = try scan(range, order: order)
    while keys.count < limit, let (key, _) = try scan.next() {
      keys.append(StoreKey(copying: key))
    }
    return keys
  }

  /// How many entries a range has.
  func count(in range: KeyRange) throws -> Int {
    if range.lowerBound.isEmpty && range.upperBound == nil { return try entryCount() }
    var count = 0
    var scan = try scan(range)
    while try scan.next() != nil {
      count += 1
    }
    return count
  }
}
#endif
