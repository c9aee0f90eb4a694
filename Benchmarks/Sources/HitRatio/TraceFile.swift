import ArgumentParser
import Foundation

/// A reader of traces, which have one key number on each line.
///
/// Lines with `*` are skipped.
enum TraceFile {
  /// Returns the keys of a trace, in the order of the reads.
  ///
  /// - Parameter path: The path of the file, plain or compressed by gzip.
  static func keys(at path: String) throws -> [UInt64] {
    guard let data = FileManager.default.contents(atPath: path) else { throw ValidationError("\(path) cannot be read") }
    let isCompressed = data.starts(with: [0x1F, 0x8B])
    let text = String(decoding: isCompressed ? try decompressed(path) : data, as: UTF8.self)
    var keys: [UInt64] = []
    // Not a comparison with a line feed: a carriage return with a line feed is one character.
    for line in text.split(whereSeparator: \.isNewline) {
      let word = line.trimmingCharacters(in: .whitespaces)
      guard !word.isEmpty, word != "*" else { continue }
      guard let key = UInt64(word) else { throw ValidationError("\(path) has a line that is not a number: \(word)") }
      keys.append(key)
    }
    guard !keys.isEmpty else { throw ValidationError("\(path) has no keys") }
    return keys
  }

  private static func decompressed(_ path: String) throws -> Data {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["gzip", "-dc", "--", path]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw ValidationError("gzip cannot read \(path)") }
    return data
  }
}
