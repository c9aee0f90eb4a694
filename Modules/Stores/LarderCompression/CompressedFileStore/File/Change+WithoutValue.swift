#if Compression
import Larder

extension Change {
  /// The change, of a value only that there is one.
  var withoutValue: Change<Void> {
    switch self {
    case .set(let key, _): .set(key, ())
    case .remove(let key): .remove(key)
    case .removeAll(let range): .removeAll(range)
    }
  }
}
#endif
