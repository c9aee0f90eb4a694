#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A file or standard input, read from beginning to end.
package struct ByteInput: ~Copyable {
  /// The path that stands for standard input.
  package static let standardInputPath = "-"

  private static let chunkSize = 256 << 10

  /// The name of the input in messages.
  package let name: String

  /// The number of bytes to read, or `nil` if it is unknown, as with a pipe.
  package let totalBytes: Int?

  /// The number of bytes read so far.
  package private(set) var bytesRead = 0

  private let descriptor: Descriptor
  private let isOwned: Bool
  private var buffer = [UInt8](repeating: 0, count: ByteInput.chunkSize)

  /// Opens a file.
  ///
  /// - Parameter path: The file, or `-` for standard input.
  /// - Throws: ``CommandFailure`` with ``ExitStatus/notPermitted`` or ``ExitStatus/noInput``.
  package init(_ path: String) throws {
    isOwned = path != ByteInput.standardInputPath
    name = isOwned ? path : "standard input"
    do throws(SystemError) {
      descriptor = isOwned ? try Descriptor(reading: path) : .standardInput
    } catch {
      throw error.isRefusal
        ? CommandFailure(.notPermitted, "cannot open \(path): \(error.message)", advice: "Check its permissions.")
        : CommandFailure(.noInput, "cannot open \(path): \(error.message)", advice: "Check the path.")
    }
    totalBytes = descriptor.remainingBytes
  }

  deinit {
    if isOwned { descriptor.close() }
  }

  /// Reads the bytes that are available, or waits for some.
  ///
  /// This blocks the calling thread. The tool does one thing at a time, and stores work on threads of their own, so
  /// nothing waits for the blocked thread.
  ///
  /// - Returns: The next bytes; an empty slice at the end.
  /// - Throws: ``CommandFailure``.
  package mutating func read() throws -> ArraySlice<UInt8> {
    do {
      let count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
      bytesRead += count
      return buffer[..<count]
    } catch let error as SystemError {
      let status: ExitStatus = error.code == EISDIR ? .noInput : .inputOutput
      throw CommandFailure(status, "cannot read \(name): \(error.message)", advice: "Check the path.")
    }
  }

  /// Reads the rest of the input.
  ///
  /// - Throws: ``CommandFailure``.
  package mutating func readToEnd() throws -> [UInt8] {
    var bytes: [UInt8] = []
    while case let chunk = try read(), !chunk.isEmpty {
      bytes.append(contentsOf: chunk)
    }
    return bytes
  }
}

/// The lines of a file or of standard input.
package struct InputLines: ~Copyable {
  private var input: ByteInput
  private var splitter = LineSplitter()
  private var isAtEnd = false

  /// Creates the lines from the current position of an input to its end.
  package init(_ input: consuming ByteInput) {
    self.input = input
  }

  /// The number of bytes read so far.
  package var bytesRead: Int { input.bytesRead }

  /// The number of bytes to read, or `nil` if it is unknown.
  package var totalBytes: Int? { input.totalBytes }

  /// Reads the next line.
  ///
  /// - Returns: The line, or `nil` at the end.
  /// - Throws: ``CommandFailure``.
  package mutating func next() throws -> LineSplitter.Line? {
    while true {
      if let line = splitter.next() { return line }
      if isAtEnd { return nil }
      let chunk = try input.read()
      isAtEnd = chunk.isEmpty
      splitter.append(chunk)
      if isAtEnd { splitter.finish() }
    }
  }
}
