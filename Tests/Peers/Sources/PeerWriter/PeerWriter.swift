import Foundation
import GRDB

/// A library that stores numbers under keys, in the way in which its documentation does.
protocol Peer {
  init(folder: String) throws
  mutating func write(_ value: Int, forKey key: Int) throws
  func read() throws -> [Int: Int]
}

struct GRDBPeer: Peer {
  private let queue: DatabaseQueue

  init(folder: String) throws {
    queue = try DatabaseQueue(path: folder + "/peer.sqlite")
    try queue.write { database in
      try database.execute(
        sql: "CREATE TABLE IF NOT EXISTS entries (key INTEGER PRIMARY KEY, value INTEGER NOT NULL)")
    }
  }

  func write(_ value: Int, forKey key: Int) throws {
    try queue.write { try $0.execute(sql: "INSERT OR REPLACE INTO entries VALUES (?, ?)", arguments: [key, value]) }
  }

  func read() throws -> [Int: Int] {
    try queue.read { database in
      let rows = try Row.fetchAll(database, sql: "SELECT key, value FROM entries")
      return Dictionary(uniqueKeysWithValues: rows.map { ($0["key"], $0["value"]) })
    }
  }
}

/// A file that is encoded and replaced with each write.
struct AtomicFilePeer: Peer {
  private let url: URL
  private var entries: [Int: Int] = [:]

  init(folder: String) throws {
    url = URL(filePath: folder + "/peer.json")
    if FileManager.default.fileExists(atPath: url.path) {
      entries = try JSONDecoder().decode([Int: Int].self, from: Data(contentsOf: url))
    }
  }

  mutating func write(_ value: Int, forKey key: Int) throws {
    entries[key] = value
    try JSONEncoder().encode(entries).write(to: url, options: .atomic)
  }

  func read() throws -> [Int: Int] { entries }
}

/// `UserDefaults`, whose file is below the folder because `HOME` is.
struct UserDefaultsPeer: Peer {
  private let defaults = UserDefaults.standard

  init(folder: String) throws {}

  func write(_ value: Int, forKey key: Int) throws {
    defaults.set(value, forKey: "peer.\(key)")
    struct NotSynchronized: Error {}
    guard defaults.synchronize() else { throw NotSynchronized() }
  }

  func read() throws -> [Int: Int] {
    let entries = defaults.dictionaryRepresentation().compactMap { name, value -> (Int, Int)? in
      guard name.hasPrefix("peer."), let key = Int(name.dropFirst(5)), let value = value as? Int else { return nil }
      return (key, value)
    }
    return Dictionary(uniqueKeysWithValues: entries)
  }
}

@main
enum PeerWriter {
  /// The arguments are those of `Scripts/peers`: an action, a library, a folder, and for writes the last number and the number of keys.
  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count >= 4 else { throw CocoaError(.featureUnsupported) }
    switch arguments[2] {
    case "GRDB": try run(GRDBPeer(folder: arguments[3]), arguments)
    case "AtomicFile": try run(AtomicFilePeer(folder: arguments[3]), arguments)
    case "Defaults": try run(UserDefaultsPeer(folder: arguments[3]), arguments)
    default: throw CocoaError(.featureUnsupported)
    }
  }

  private static func run(_ peer: some Peer, _ arguments: [String]) throws {
    if arguments[1] == "--read" {
      let entries = try peer.read().map { "\"\($0)\":\($1)" }.joined(separator: ",")
      return print("{\(entries)}")
    }
    var peer = peer
    guard arguments.count >= 6, let last = Int(arguments[4]), let keyCount = Int(arguments[5]) else {
      throw CocoaError(.featureUnsupported)
    }
    for number in 1...last {
      try peer.write(number, forKey: number % keyCount)
      FileHandle.standardOutput.write(Data("\(number)\n".utf8))
    }
  }
}
