import StoreAccess

/// The text that `larder` prints without arguments, which fits a screen.
enum Overview {
  /// The verbs by task.
  static let groups: [(title: String, verbs: [String])] = [
    ("Entries", ["create", "get", "set", "edit", "remove", "clear", "list", "count", "sample", "purge"]),
    ("Look", ["inspect", "watch", "stores", "stack", "stat"]),
    ("Copies", ["import", "export", "copy", "diff", "backup", "restore"]),
    ("Upkeep", ["verify", "salvage", "migrate", "compact", "bench"]),
    ("Encryption", ["keyring", "reencrypt"]),
    ("More", ["queue", "http"]),
  ]

  static var text: String {
    let lines = groups.map { "  \($0.title.padding(to: 12))\($0.verbs.joined(separator: " "))" }
    return """
      larder inspects and edits Larder stores. A store is named by a URL, such as
      json:users.json, sqlite:shop.sqlite#users, lmdb:sessions or queue:outbox.

        larder set json:users.json ada '{"name":"Ada"}'
        larder get json:users.json ada
        larder list json:users.json --prefix a --limit 20
        larder inspect json:users.json

      \(lines.joined(separator: "\n"))

      larder VERB --help explains a verb. larder --help lists all verbs and URLs.
      """
  }
}
