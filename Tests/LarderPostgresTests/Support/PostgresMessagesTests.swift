import TestSupport
import Testing

@Suite struct PostgresMessagesTests {
  @Test func `messages are split wherever the bytes are cut`() {
    let startup = PostgresMessage(nil, [0, 3, 0, 0] + "user\0larder\0\0".utf8)
    let messages = [
      PostgresMessage(nil, [4, 210, 22, 47]), startup, PostgresMessage("Q", "SELECT 1\0"), PostgresMessage("S"),
      PostgresMessage("d", [UInt8](repeating: 7, count: 300)),
    ]
    #expect(messages.map(\.isEncryptionRequest) == [true, false, false, false, false])
    let bytes = messages.flatMap(\.bytes)
    for size in [1, 2, 3, 7, bytes.count] {
      var reader = PostgresMessageReader(isClient: true)
      var received: [PostgresMessage] = []
      for start in stride(from: 0, to: bytes.count, by: size) {
        reader.append(Array(bytes[start..<min(start + size, bytes.count)]))
        while let message = reader.next() { received.append(message) }
      }
      #expect(received == messages)
    }
    // All messages of a server have types.
    var reader = PostgresMessageReader(isClient: false)
    reader.append(PostgresMessage("Z", "I").bytes)
    #expect(reader.next() == PostgresMessage("Z", "I"))
    #expect(reader.next() == nil)
  }
}

@Suite struct PostgresConversationTests {
  @Test func `simple queries commit`() {
    var talk = Talk()
    talk.expect("SELECT 1; SHOW fsync", commits: false, answers: [("C", false), ("C", false), ("Z", false)])
    talk.expect("insert INTO t VALUES (1)", commits: true, answers: [("C", true), ("Z", false)])
    // A failed statement is the answer to its own commit.
    talk.expect("INSERT INTO t VALUES (1)", commits: true, answers: [("E", true), ("Z", false)])
    talk.expect("INSERT INTO t VALUES (';')", commits: true, answers: [("C", false), ("Z", true)])
    talk.expect("BEGIN", commits: false, answers: [("C", false), ("Z-T", false)])
    talk.expect("INSERT INTO t VALUES (1)", commits: false, answers: [("C", false), ("Z-T", false)])
    talk.expect(" Commit;", commits: true, answers: [("N", false), ("C", true), ("Z", false)])
    talk.expect("BEGIN; DELETE FROM t; END", commits: true, answers: [("C", false), ("C", false), ("C", true)])
  }

  @Test func `sync messages end implicit transactions`() {
    var talk = Talk()
    #expect(talk.client(("P", "read\0SELECT 1\0"), ("P", "write\0WITH a AS (DELETE FROM t) SELECT 1\0")) == [])
    #expect(talk.client("B", "\0read\0") == [] && talk.client(("E", "\0"), ("S", "")) == [])
    #expect(talk.server("1", "1", "2", "D", "C", "Z") == [])
    #expect(talk.client(("B", "\0write\0"), ("E", "\0"), ("B", "\0read\0"), ("E", "\0"), ("S", "")) == [4])
    // The answers to the statements may come before the commit.
    #expect(talk.server("2", "C", "2", "D", "C", "Z") == [5])
    #expect(talk.client(("B", "\0write\0"), ("E", "\0"), ("S", "")) == [2])
    // An error after all answers is that of the commit.
    #expect(talk.server("2", "C", "E", "Z") == [2])
    #expect(talk.client(("B", "\0write\0"), ("E", "\0"), ("S", "")) == [2])
    #expect(talk.server("2", "E", "Z") == [])
  }

  @Test func `transactions in pipelines commit before the sync`() {
    var talk = Talk()
    let names = ["BEGIN", "UPDATE t SET i = 1", "COMMIT", "SELECT 1"]
    for name in names { #expect(talk.client("P", "\(name)\0\(name)\0") == []) }
    #expect(talk.server("1", "1", "1", "1") == [])
    let transaction = names.prefix(3).flatMap { [("B", "\0\($0)\0"), ("E", "\0")] }
    // Two transactions and a read are on their way at the same time.
    #expect(talk.client(transaction + [("S", "")]) == [5])
    #expect(talk.client(transaction + [("B", "\0SELECT 1\0"), ("E", "\0"), ("S", "")]) == [5])
    #expect(talk.server("2", "C", "2", "C", "2", "C", "Z") == [5])
    #expect(talk.server("2", "C", "2", "C", "2", "C", "2", "C", "Z") == [5])
    // A statement fails, so there is no commit to answer. The transaction remains open.
    #expect(talk.client(transaction + [("S", "")]) == [5])
    #expect(talk.server("2", "C", "E", "Z-E") == [])
    #expect(talk.client(("B", "\0UPDATE t SET i = 1\0"), ("E", "\0"), ("S", "")) == [])
    #expect(talk.server("E", "Z-E") == [])
    // The commit itself fails.
    #expect(talk.client(("B", "\0COMMIT\0"), ("E", "\0"), ("S", "")) == [1])
    #expect(talk.server("2", "E", "Z") == [1])
  }
}

/// A conversation, and the messages of both sides by their types.
private struct Talk {
  private var conversation = PostgresConversation()

  init() {
    _ = client("p", "password\0")
    for type in ["R", "S", "K", "Z"] { _ = server(type) }
  }

  mutating func expect(
    _ query: String, commits: Bool, answers: [(String, Bool)], sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(client("Q", query + "\0").isEmpty == !commits, sourceLocation: sourceLocation)
    for (type, isCommit) in answers {
      #expect(server(type).isEmpty == !isCommit, "\(type)", sourceLocation: sourceLocation)
    }
    // The rest of the answer.
    if answers.last?.0.hasPrefix("Z") == false { _ = server("Z") }
  }

  /// Sends messages of the client, and returns the numbers of those that commit.
  mutating func client(_ messages: [(String, String)]) -> [Int] {
    messages.indices.filter { index in
      conversation.commits(client: PostgresMessage(messages[index].0.first, messages[index].1))
    }
  }

  mutating func client(_ messages: (String, String)...) -> [Int] { client(messages) }
  mutating func client(_ type: String, _ content: String) -> [Int] { client([(type, content)]) }

  /// Sends messages of the server, and returns the numbers of those that answer a commit.
  mutating func server(_ types: String...) -> [Int] {
    types.indices.filter { index in
      // `Z` has the state of the transaction, which defaults to idle.
      let content = types[index].split(separator: "-").dropFirst().first ?? "I"
      return conversation.answersCommit(server: PostgresMessage(types[index].first, String(content)))
    }
  }
}

extension PostgresMessage {
  fileprivate init(_ type: Character?, _ content: [UInt8] = []) {
    let length = withUnsafeBytes(of: UInt32(content.count + 4).bigEndian, Array.init)
    self.init(type: type, bytes: (type?.asciiValue.map { [$0] } ?? []) + length + content)
  }

  fileprivate init(_ type: Character?, _ content: String) {
    self.init(type, Array(content.utf8))
  }
}
