import Foundation
public import Larder

/// The records of the index of this machine's package manager, which have about 800 bytes each.
public enum PackageRecords {
  /// The maximum number of records.
  public static let maximumCount = 60_000

  /// Reads the index, which exists on Debian and Ubuntu.
  ///
  /// - Returns: Each package as an object of its fields, under its name, version and architecture, in the order of the
  ///   index; or `nil` if there is no index, or only a small one.
  /// - Throws: The error of a record's JSON, which never occurs for text.
  public static func all() throws -> [StoreEntry<JSONText>]? {
    guard let index = try index() else { return nil }
    var entries: [StoreKey: JSONText] = [:]
    var keys: [StoreKey] = []
    for record in index.components(separatedBy: "\n\n") where !record.isEmpty && keys.count < maximumCount {
      let fields = fields(of: record)
      func field(_ name: String) -> String { fields.first { $0.name == name }?.value ?? "" }
      let key = StoreKey("\(field("Package")) \(field("Version")) \(field("Architecture"))")
      let members = fields.map { "\(JSONText(string: $0.name)):\(JSONText(string: $0.value))" }
      if entries.updateValue(try JSONText("{\(members.joined(separator: ","))}"), forKey: key) == nil {
        keys.append(key)
      }
    }
    guard keys.count == maximumCount else { return nil }
    return keys.compactMap { key in entries[key].map { StoreEntry(key: key, value: $0) } }
  }

  private static func index() throws -> String? {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["sh", "-c", "command -v apt-cache >/dev/null && apt-cache dumpavail"]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return process.terminationStatus == 0 ? String(decoding: data, as: UTF8.self) : nil
  }

  private static func fields(of record: String) -> [(name: String, value: String)] {
    var fields: [(name: String, value: String)] = []
    for line in record.split(separator: "\n") {
      if line.first == " " {
        // The line continues the previous field.
        if !fields.isEmpty { fields[fields.count - 1].value += "\n\(line.dropFirst())" }
      } else if let colon = line.firstIndex(of: ":") {
        let value = line[line.index(after: colon)...].drop { $0 == " " }
        fields.append((String(line[..<colon]), String(value)))
      }
    }
    return fields
  }
}
