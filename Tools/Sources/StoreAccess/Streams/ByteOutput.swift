#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif
import Foundation

/// A buffer for standard output that writes in large pieces.
///
/// Bytes that are not flushed are lost. No `deinit` flushes them, because a failure to write must be reported.
package final class ByteOutput {
  private static let capacity = 64 << 10

  /// The form of JSON for this output.
  package let style: JSONStyle

  private let descriptor: Descriptor
  private var pending: [UInt8] = []

  /// Creates an output.
  ///
  /// - Parameter descriptor: The destination of the bytes. Defaults to standard output.
  package init(to descriptor: Descriptor = .standardOutput) {
    self.descriptor = descriptor
    style = JSONStyle(isTerminal: descriptor.isTerminal, environment: ProcessInfo.processInfo.environment)
  }

  /// Adds a line.
  ///
  /// - Parameter append: Appends the line, without its end, to the buffer that it receives.
  /// - Throws: ``BrokenOutput`` if the buffer is full and cannot be written.
  package func writeLine(_ append: (inout [UInt8]) -> Void) throws(BrokenOutput) {
    append(&pending)
    try write([UInt8(ascii: "\n")])
  }

  /// Adds bytes, unchanged.
  ///
  /// - Throws: ``BrokenOutput`` if the buffer is full and cannot be written.
  package func write(_ bytes: [UInt8]) throws(BrokenOutput) {
    pending += bytes
    if pending.count >= ByteOutput.capacity { try flush() }
  }

  /// Adds a line.
  ///
  /// - Throws: ``BrokenOutput`` if the buffer is full and cannot be written.
  package func writeLine(_ line: String) throws(BrokenOutput) {
    try writeLine { $0.append(contentsOf: line.utf8) }
  }

  /// Writes the buffered bytes.
  ///
  /// - Throws: ``BrokenOutput`` if they cannot be written. They are dropped then, because output after a gap would
  ///   mislead.
  package func flush() throws(BrokenOutput) {
    defer { pending.removeAll(keepingCapacity: true) }
    do throws(SystemError) {
      try descriptor.write(pending)
    } catch {
      throw BrokenOutput(error: error)
    }
  }
}

/// A failure to write to standard output.
package struct BrokenOutput: Error, Equatable {
  /// The error of the system call.
  package let error: SystemError

  /// A Boolean value that indicates whether the reader of the output has closed its end.
  package var isReaderGone: Bool { error.code == EPIPE }
}

/// Writes to standard error.
package enum Diagnostics {
  /// Writes a line.
  package static func writeLine(_ line: String) {
    write(line + "\n")
  }

  /// Writes text, unchanged.
  package static func write(_ text: String) {
    do throws(SystemError) {
      try Descriptor.standardError.write(Array(text.utf8))
    } catch {
      // There is no other stream to report this failure on.
    }
  }
}
