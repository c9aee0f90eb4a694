import Foundation

/// Names in a file, one on each line, which survive the process.
struct NotedNames {
  /// The names.
  private(set) var names: Set<String>

  private let file: FileHandle

  /// Reads the names in a file, which is created if it is missing.
  ///
  /// - Parameter path: The path of the file.
  /// - Throws: ``SystemError`` if the file cannot be opened, or the error of reading or truncating it.
  init(path: String) throws {
    let descriptor = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw SystemError.current() }
    file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    let bytes = try file.readToEnd() ?? Data()
    // A process that was killed while writing has left a part of a line.
    let lines = bytes.lastIndex(of: UInt8(ascii: "\n")).map { bytes[...$0] } ?? Data()
    try file.truncate(atOffset: UInt64(lines.count))
    names = Set(lines.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) })
  }

  /// Adds names, which survive the process when this method returns.
  ///
  /// - Parameter more: The names. Existing names are ignored.
  /// - Returns: The number of new names.
  /// - Throws: The error of writing. None of the names is added in this case.
  @discardableResult
  mutating func note(_ more: [String]) throws -> Int {
    let new = Set(more).subtracting(names)
    guard !new.isEmpty else { return 0 }
    try file.write(contentsOf: Data(new.map { "\($0)\n" }.joined().utf8))
    names.formUnion(new)
    return new.count
  }
}
