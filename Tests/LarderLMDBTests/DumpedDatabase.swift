import Larder

/// What `mdb_dump` prints of one named database: lines of a header, then one of a key and one of its value in turn.
struct DumpedDatabase {
  let name: String
  let entries: [StoreEntry<[UInt8]>]

  struct Unreadable: Error {
    let line: Substring
  }

  /// Reads everything that was printed.
  static func all(in lines: [Substring]) throws -> [DumpedDatabase] {
    var databases: [DumpedDatabase] = []
    var name = ""
    var isPrintable = false
    var data: [[UInt8]]?
    for line in lines {
      if let items = data {
        if line == "DATA=END" {
          let entries = stride(from: 0, to: items.count - 1, by: 2).map { index in
            StoreEntry(key: StoreKey(bytes: items[index]), value: items[index + 1])
          }
          databases.append(DumpedDatabase(name: name, entries: entries))
          data = nil
        } else {
          guard line.first == " ", let item = bytes(of: line.dropFirst(), isPrintable: isPrintable) else {
            throw Unreadable(line: line)
          }
          data?.append(item)
        }
      } else if line == "HEADER=END" {
        data = []
      } else if line.hasPrefix("database=") {
        name = String(line.dropFirst("database=".count))
      } else if line.hasPrefix("format=") {
        isPrintable = line == "format=print"
      }
    }
    return databases
  }

  private static func bytes(of text: Substring, isPrintable: Bool) -> [UInt8]? {
    guard isPrintable else { return Hexadecimal.bytes(of: text.utf8) }
    var bytes: [UInt8] = []
    var rest = text.utf8
    while let byte = rest.popFirst() {
      if byte != UInt8(ascii: "\\") {
        bytes.append(byte)
      } else if rest.first == UInt8(ascii: "\\") {
        bytes.append(rest.removeFirst())
      } else {
        guard let escaped = Hexadecimal.bytes(of: rest.prefix(2)), escaped.count == 1 else { return nil }
        bytes += escaped
        rest.removeFirst(2)
      }
    }
    return bytes
  }
}
