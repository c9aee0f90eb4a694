/// Gathers what goes to standard output and writes it in large pieces.
///
/// What is not flushed is lost: a failure to write must be seen, so no `deinit` does it in secret.
final class ByteOutput {
  private static let capacity = 64 << 10

  private let descriptor: Descriptor
  private var pending: [UInt8] = []

  /// Makes an output.
  ///
  /// - Parameter descriptor: Where the bytes go; standard output unless given.
  init(to descriptor: Descriptor = .standardOutput) {
    self.descriptor = descriptor
  }

  /// Adds a line.
  ///
  /// - Parameter append: Appends the line, without its end, to what it gets.
  /// - Throws: ``BrokenOutput`` where enough was gathered and cannot be written.
  func writeLine(_ append: (inout [UInt8]) -> Void) throws(BrokenOutput) {
    append(&pending)
    try write([UInt8(ascii: "\n")])
  }

  /// Adds bytes as they are.
  ///
  /// - Throws: ``BrokenOutput`` where they cannot be written.
  func write(_ bytes: [UInt8]) throws(BrokenOutput) {
    pending += bytes
    if pending.count >= ByteOutput.capacity { try flush() }
  }

  /// Adds a line.
  ///
  /// - Throws: ``BrokenOutput`` where enough was gathered and cannot be written.
  func writeLine(_ line: String) throws(BrokenOutput) {
    try writeLine { $0.append(contentsOf: line.utf8) }
  }

  /// Writes what was gathered.
  ///
  /// - Throws: ``BrokenOutput`` where it cannot be written. It is dropped then: after a gap, more would only mislead.
  func flush() throws(BrokenOutput) {
    defer { pending.removeAll(keepingCapacity: true) }
    do throws(SystemError) {
      try descriptor.write(pending)
    } catch {
      throw BrokenOutput(error: error)
    }
  }
}
