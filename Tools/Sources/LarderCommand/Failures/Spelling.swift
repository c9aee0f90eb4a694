import StoreAccess

/// Finds the word that a misspelled one most likely stands for.
enum Spelling {
  /// Returns the candidate nearest to a misspelled word, or `nil` if no candidate is near.
  ///
  /// - Parameters:
  ///   - word: The misspelled word.
  ///   - candidates: The known words. The first of several equally near ones is returned.
  static func nearest(to word: String, among candidates: [String]) -> String? {
    candidates.map { (name: $0, distance: distance(Array(word), Array($0))) }
      // A word of which more than half is changed is another word.
      .filter { $0.distance <= min(2, $0.name.count / 2) }
      .min { $0.distance < $1.distance }?.name
  }

  /// Returns the optimal string alignment distance: the number of letters to add, remove or replace, or of neighbors to
  /// swap, that turns one word into the other.
  private static func distance(_ left: [Character], _ right: [Character]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for (i, letter) in left.enumerated() {
      var row = [i + 1]
      for (j, other) in right.enumerated() {
        var edits = min(last[j] + (letter == other ? 0 : 1), last[j + 1] + 1, row[j] + 1)
        if i > 0, j > 0, letter == right[j - 1], left[i - 1] == other { edits = min(edits, beforeLast[j - 1] + 1) }
        row.append(edits)
      }
      (beforeLast, last) = (last, row)
    }
    return last[right.count]
  }
}

/// Finds the verb that an unknown one most likely stands for.
enum VerbSuggestion {
  /// The names that other programs use for the verbs.
  private static let synonyms = [
    "ls": "list", "keys": "list", "rm": "remove", "del": "remove", "delete": "remove", "cat": "get", "put": "set",
    "cp": "copy", "dump": "export", "restore": "import", "info": "stat", "repair": "salvage", "push": "enqueue",
    "pop": "receive", "ack": "acknowledge", "nack": "release",
  ]

  /// Returns the verb that a word stands for, or `nil` if no verb is near.
  ///
  /// - Parameters:
  ///   - word: The unknown word.
  ///   - verbs: The known verbs.
  static func verb(for word: String, among verbs: [String]) -> String? {
    if let name = synonyms[word], verbs.contains(name) { return name }
    return Spelling.nearest(to: word, among: verbs)
  }
}
