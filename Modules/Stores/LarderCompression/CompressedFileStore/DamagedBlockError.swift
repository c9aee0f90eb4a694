#if Compression
public import Larder

/// A block of a compressed file whose bytes are not those that were written.
///
/// It is found as the ``StoreError/underlying`` error of what a ``CompressedFileStore`` throws.
public struct DamagedBlockError: UnreadableKeysError, Hashable {
  /// Where in the file the block begins, in bytes.
  public let block: Int64

  /// The keys that cannot be read because of it: one key, or a range of which it is not known which keys there are.
  ///
  /// Keys and entries before ``KeyRange/lowerBound`` and from ``KeyRange/upperBound`` on can be read, as far as nothing
  /// else is damaged.
  public let keys: KeyRange
}

extension DamagedBlockError: CustomStringConvertible {
  /// Where the block is.
  public var description: String { "the block at byte \(block) is damaged" }
}
#endif
