/// Guesses which word is meant by a misspelt one.
enum Spelling {
  /// The word that is nearest to a misspelt one, or `nil` if none is near.
  ///
  /// - Parameters:
  ///   - word: The misspelt word.
  ///   - candidates: The words that there are; of two that are equally near the first is taken.
  static func nearest(to word: String, among candidates: [String]) -> String? {
    candidates.map { (name: $0, distance: distance(Array(word), Array($0))) }
      // Half of a word changed is another word.
      .filter { $0.distance <= min(2, $0.name.count / 2) }
      .min { $0.distance < $1.distance }?.name
  }

  /// How many edits make one word of another: a letter added, removed or replaced, or two neighbors swapped (the optimal
  /// string alignment distance).
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
