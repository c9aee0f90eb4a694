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
    let nearest = verbs.map { (name: $0, distance: distance(Array(word), Array($0))) }.min { $0.distance < $1.distance }
    // Half of a word changed is another word.
    return nearest.flatMap { $0.distance <= min(2, $0.name.count / 2) ? $0.name : nil }
  }

  /// How many letters must be added, removed or replaced to make one word of another (the Levenshtein distance).
  private static func distance(_ left: [Character], _ right: [Character]) -> Int {
    var row = Array(0...right.count)
    for (i, letter) in left.enumerated() {
      var diagonal = row[0]
      row[0] = i + 1
      for (j, other) in right.enumerated() {
        let replaced = diagonal + (letter == other ? 0 : 1)
        diagonal = row[j + 1]
        row[j + 1] = min(replaced, row[j] + 1, row[j + 1] + 1)
      }
    }
    return row[right.count]
  }
}
