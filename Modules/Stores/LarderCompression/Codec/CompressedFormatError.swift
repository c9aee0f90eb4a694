#if Compression
public import Larder

/// The bytes of a value are not what ``CompressedCodec`` writes.
public struct CompressedFormatError: ValueFreeError, Hashable {
  /// What is wrong, for people to read, without anything of the value.
  public let message: String

  /// Describes what is wrong with a stored value.
  init(_ message: String) {
    self.message = message
  }
}

extension CompressedFormatError: CustomStringConvertible {
  /// What is wrong, without anything of the value.
  public var description: String { message }
}
#endif
