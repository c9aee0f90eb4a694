#if Postgres
import Foundation
import Larder
import LarderPostgres
import TestSupport
import Testing

/// Tables of others: rules that a store cannot keep, encodings that lose text, schemas and names in URLs.
@Suite(.timeLimit(.minutes(60))) struct TableTests {
  // MARK: Rules

  /// A trigger that reads a field of each value, with which a row without a value fails.
  private static let validation = """
    CREATE TABLE users(key bytea PRIMARY KEY, value json);
    CREATE FUNCTION validate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.value->>'name' IS NULL THEN RAISE EXCEPTION 'no name'; END IF; RETURN NEW; END $$;
    CREATE TRIGGER validate BEFORE INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION validate();
    """

  @Test(arguments: [
    "CREATE TABLE users(key bytea PRIMARY KEY, value json NOT NULL)", validation,
    "CREATE TABLE users(key bytea PRIMARY KEY, value json, CHECK (value IS NOT NULL))",
  ])
  func `a table on which no update would work is refused`(sql: String) async throws {
    try await Setting.run { setting in
      try await setting.psql(sql)
      await expectStoreError(.unsupported) {
        _ = try await PostgresStore<[String: String]>(in: setting.database, name: "users", codec: .json())
      }
      #expect(try await setting.psql("SELECT count(*) FROM users") == "0")
      let reading = try await PostgresDatabase(
        setting.server.connectionString, schema: setting.schema, access: .readOnly)
      let store = try await PostgresStore<[String: String]>(in: reading, name: "users", codec: .json())
      #expect(try await store.count(in: .all) == 0)
      await reading.close()
    }
  }

  @Test func `a table with rules for values is accepted`() async throws {
    try await Setting.run { setting in
      try await setting.psql(
        """
        CREATE TABLE users(key bytea PRIMARY KEY, value json CHECK (value->>'name' <> ''));
        CREATE TABLE audit(key bytea);
        CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF NEW.value IS NOT NULL THEN INSERT INTO \(setting.schema).audit VALUES(NEW.key); END IF; RETURN NEW; END $$;
        CREATE TRIGGER audit AFTER INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION audit();
        """)
      let store = try await PostgresStore<[String: String]>(in: setting.database, name: "users", codec: .json())
      try await store.update(["a", "b"]) { $0[0] = ["name": "Ada"] }
      await expectStoreError(.notPermitted) { try await store.setValue(["name": ""], forKey: "b") }
      #expect(try await setting.psql("SELECT key FROM audit") == "\\x61")
    }
  }

  // MARK: Encodings

  @Test func `an encoding that changes text keeps values`() async throws {
    let server = try await PostgresServer.local
    let name = "euc_\(UInt32.random(in: 0 ... .max))"
    try await server.run(
      psql: "CREATE DATABASE \(name) ENCODING 'EUC_JP' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    let connection = "\(server.connectionString) dbname=\(name)"
    let database = try await PostgresDatabase(connection)
    let texts = try await PostgresStore<String>(in: database, name: "texts", codec: .json())
    let queue = try await PostgresQueue<String>(in: database, name: "queue", codec: .json())
    // U+00A6 becomes another character in a column of JSON, and the euro sign has no place in some encodings.
    let text = "a\u{A6}b €"
    try await texts.setValue(text, forKey: "k")
    try await queue.enqueue(text)
    #expect(try await texts.value(forKey: "k") == text)
    #expect(try await queue.peek(max: 1).map(\.value) == [text])
    try await server.run(
      psql: "CREATE TABLE others(key bytea PRIMARY KEY, value json)", connectionString: connection)
    await expectStoreError(.unsupported) {
      _ = try await PostgresStore<String>(in: database, name: "others", codec: .json())
    }
    await database.close()
    try await server.run(psql: "DROP DATABASE \(name) WITH (FORCE)")
  }

  // MARK: URLs

  @Test func `a URL names a connection a schema and a store`() throws {
    func location(_ text: String) throws -> [String?] {
      let location = try PostgresLocation(StoreURL(text))
      return [location.connection, location.schema, location.name]
    }
    #expect(try location("postgres:users") == ["", "public", "users"])
    #expect(try location("postgres:a/b%") == ["", "public", "a/b%"], "a name alone is taken as it is")
    #expect(try location("postgres:host=db#users") == ["host=db", "public", "users"])
    #expect(try location("postgres:host=db#app/users") == ["host=db", "app", "users"])
    #expect(try location("postgres:#app/users") == ["", "app", "users"])
    #expect(try location("postgres:#a%3Db%2Fc%23") == ["", "public", "a=b/c#"])
    #expect(try location("postgres:postgresql://db/shop#a%20b/c") == ["postgresql://db/shop", "a b", "c"])
    #expect(try location("postgres:host=db") == ["host=db", "public", nil])
    #expect(try location("postgres:#app/") == ["", "app", nil])
    for text in ["postgres:#a/b/c", "postgres:#50%", "postgres:host=db password=secret#users"] {
      #expect(throws: StoreError.self) { try location(text) }
    }
    for (place, names) in [
      ("postgres:x", ["users", "a/b%", "a=b", "#", "x://y"]), ("postgres:host=db#x", ["users", "a/b%c#d", "%2F"]),
      ("postgres:#a%2Fb/x", ["users", "e=f"]),
    ] {
      let parent = try PostgresLocation(StoreURL(place))
      for name in names {
        let found = try PostgresLocation(StoreURL(parent.url(named: name)))
        #expect((found.connection, found.schema, found.name) == (parent.connection, parent.schema, name), "\(name)")
      }
    }
  }

  @Test func `a store of another schema is opened by its URL`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "a=b", codec: .json())
      try await store.setValue(1, forKey: "k")
      let url = try StoreURL("postgres:\(setting.server.connectionString)#\(setting.schema)/a%3Db")
      let opened = try await PostgresStoreProvider().open(
        url, options: StoreOptions(createsIfMissing: false), newCodecName: nil)
      let typed = try await opened.typed(codec: JSONCodec<Int>())
      #expect(try await typed.value(forKey: "k") == 1)
      try await typed.close()
    }
  }
}
#endif
