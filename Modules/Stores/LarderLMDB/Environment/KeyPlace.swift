#if LMDB
import Larder

/// A key among others, as it is sorted: mostly its first bytes decide, which are at hand as one number.
struct KeyPlace {
  /// The first eight bytes, as a big-endian number, padded with zeros: keys with different ones are in the order of these.
  let prefix: UInt64

  /// Where the key is among the others.
  let index: Int

  /// Notes a key.
  init(_ key: StoreKey, index: Int) {
    self.index = index
    prefix = key.withUnsafeBytes { bytes in
      if bytes.count >= 8 { return UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)) }
      return bytes.reduce(0) { $0 << 8 | UInt64($1) } << (8 * (8 - UInt64(bytes.count)))
    }
  }

  /// Below how many places counting bytes costs more than comparing.
  private static let fewest = 64

  /// The places of some keys in the order of the keys, and of equal keys in the order in which they are given.
  ///
  /// - Parameters:
  ///   - count: How many keys there are.
  ///   - key: Gives each of them.
  static func sorted(count: Int, key: (_ index: Int) -> StoreKey) -> [KeyPlace] {
    var places = (0..<count).map { KeyPlace(key($0), index: $0) }
    if count >= fewest { sortByPrefix(&places) } else { places.sort { ($0.prefix, $0.index) < ($1.prefix, $1.index) } }
    var start = 0
    while start < count {
      let prefix = places[start].prefix
      let end = places[start...].firstIndex { $0.prefix != prefix } ?? count
      if end - start > 1 {
        places[start..<end].sort { left, right in
          let (leftKey, rightKey) = (key(left.index), key(right.index))
          return leftKey < rightKey || (leftKey == rightKey && left.index < right.index)
        }
      }
      start = end
    }
    return places
  }

  /// Sorts places by the beginnings of their keys; those with the same one stay in their order.
  ///
  /// It goes through them once for each byte that is not the same in all, from the last to the first, and puts them where
  /// the count of smaller ones says: a radix sort (Knuth, The Art of Computer Programming 3, 5.2.5). Most keys that are
  /// written together differ in few bytes.
  private static func sortByPrefix(_ places: inout [KeyPlace]) {
    let differing = places.reduce(into: UInt64(0)) { $0 |= $1.prefix ^ places[0].prefix }
    var sorted = places
    for shift in stride(from: UInt64(0), to: 64, by: 8) where (differing >> shift) & 0xFF != 0 {
      var starts = [Int](repeating: 0, count: 256)
      for place in places { starts[Int(place.prefix >> shift & 0xFF)] += 1 }
      var sum = 0
      for byte in starts.indices { (starts[byte], sum) = (sum, sum + starts[byte]) }
      for place in places {
        let byte = Int(place.prefix >> shift & 0xFF)
        sorted[starts[byte]] = place
        starts[byte] += 1
      }
      swap(&places, &sorted)
    }
  }
}
#endif
