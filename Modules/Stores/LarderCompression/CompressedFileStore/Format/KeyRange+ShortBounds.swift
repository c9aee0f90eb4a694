#if Compression
import Larder

extension KeyRange {
  /// A range of the same keys whose bounds have at most ``StoreKey/maximumLength`` bytes and one.
  ///
  /// Between a longer bound and its beginning with a zero byte behind there is no key that could be stored.
  var withShortBounds: KeyRange {
    func short(_ bound: StoreKey) -> StoreKey {
      guard bound.count > StoreKey.maximumLength else { return bound }
      return StoreKey(bytes: bound.bytes.prefix(StoreKey.maximumLength) + [0])
    }
    return KeyRange(from: short(lowerBound), upTo: upperBound.map(short))
  }
}
#endif
