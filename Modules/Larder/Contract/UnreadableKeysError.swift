/// An error that tells which keys of a store cannot be read because of damage.
///
/// It is the ``StoreError/underlying`` error of a `corrupted` that a scan throws, so that a caller can read on behind the
/// damage:
///
/// ```swift
/// } catch let error as StoreError {
///   guard let lost = (error.underlying as? any UnreadableKeysError)?.keys, let next = lost.upperBound else { throw error }
///   remaining = next...
/// }
/// ```
public protocol UnreadableKeysError: ValueFreeError {
  /// One key, or a range of which it is not known which keys there are.
  ///
  /// As far as nothing else is damaged, entries before ``KeyRange/lowerBound`` and from ``KeyRange/upperBound`` on can be
  /// read.
  var keys: KeyRange { get }
}
