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
}
#endif
