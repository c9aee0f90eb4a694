#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A file or standard input, read from its beginning to its end.
struct ByteInput: ~Copyable {
  /// What stands for standard input in place of a path.
  static let standardInputPath = "-"

  private static let chunkSize = 256 << 10

  /// What is read, for messages.
  let name: String

  /// How many bytes there are to read, or `nil` where that is not known, as with a pipe.
  let totalBytes: Int?

  /// How many bytes were read.
  private(set) var bytesRead = 0

  private let descriptor: Descriptor
  private let isOwned: Bool
  private var buffer = [UInt8](repeating: 0, count: ByteInput.chunkSize)

  /// Opens a file.
  ///
  /// - Parameter path: The file, or `-` for standard input.
  /// - Throws: ``CommandFailure`` with ``ExitStatus/notPermitted`` or ``ExitStatus/noInput``.
  init(_ path: String) throws {
    isOwned = path != ByteInput.standardInputPath
    name = isOwned ? path : "standard input"
    do throws(SystemError) {
      descriptor = isOwned ? try Descriptor(reading: path) : .standardInput
    } catch {
      throw error.isRefusal
        ? CommandFailure(.notPermitted, "\(path) cannot be opened: \(error.message)", advice: "Check its permissions.")
        : CommandFailure(.noInput, "\(path) cannot be opened: \(error.message)", advice: "Check the path.")
    }
    totalBytes = descriptor.remainingBytes
  }

  deinit {
    if isOwned { descriptor.close() }
  }

  /// Reads what is there, or waits for it.
  ///
  /// It blocks the thread it is called on. The tool does one thing at a time, and what stores do meanwhile they do on
  /// threads of their own, so nothing waits for this one.
  ///
  /// - Returns: The next bytes; none at the end.
  /// - Throws: ``CommandFailure``.
  mutating func read() throws -> ArraySlice<UInt8> {
    do {
      let count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
      bytesRead += count
      return buffer[..<count]
    } catch let error as SystemError {
      let status: ExitStatus = error.code == EISDIR ? .noInput : .inputOutput
      throw CommandFailure(status, "\(name) cannot be read: \(error.message)", advice: "Check the path.")
    }
  }

  /// Reads all that is left.
  ///
  /// - Throws: ``CommandFailure``.
  mutating func readToEnd() throws -> [UInt8] {
    var bytes: [UInt8] = []
    while case let chunk = try read(), !chunk.isEmpty {
      bytes.append(contentsOf: chunk)
    }
    return bytes
  }
}
