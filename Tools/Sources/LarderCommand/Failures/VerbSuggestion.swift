/// Guesses which verb is meant by one that there is not.
enum VerbSuggestion {
  /// What other programs call the verbs.
  private static let synonyms = [
    "ls": "list", "keys": "list", "rm": "remove", "del": "remove", "delete": "remove", "cat": "get", "put": "set",
    "cp": "copy", "dump": "export", "restore": "import", "info": "stat", "repair": "salvage", "push": "enqueue",
    "pop": "receive", "ack": "acknowledge", "nack": "release",
  ]

  /// The verb that is meant, or `nil` where none is near.
  ///
  /// - Parameters:
  ///   - word: What was typed.
  ///   - verbs: The verbs that there are.
  static func verb(for word: String, among verbs: [String]) -> String? {
    if let name = synonyms[word], verbs.contains(name) { return name }
    return Spelling.nearest(to: word, among: verbs)
  }
}
