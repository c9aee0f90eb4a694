public import Larder

/// What stands before a value is no deadline.
public struct ExpiringFormatError: ValueFreeError, Hashable {
  /// What is wrong, for people to read, without anything of the value.
  public let message: String

  /// Describes what is wrong with a stored deadline.
  init(_ message: String) {
    self.message = message
  }
}

extension ExpiringFormatError: CustomStringConvertible {
  /// What is wrong, without anything of the value.
  public var description: String { message }
}
