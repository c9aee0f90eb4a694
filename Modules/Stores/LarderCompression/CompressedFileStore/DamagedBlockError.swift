#if Compression
public import Larder

/// A block of a compressed file whose bytes are not those that were written.
///
/// It is found as the ``StoreError/underlying`` error of what a ``CompressedFileStore`` throws.
public struct DamagedBlockError: ValueFreeError, Hashable {
  /// Where in the file the block begins, in bytes.
  public let block: Int64
}

extension DamagedBlockError: CustomStringConvertible {
  /// Where the block is.
  public var description: String { "the block at byte \(block) is damaged" }
}
#endif
