@testable import LarderCommand

extension LarderCommand {
  /// Returns the words of a verb, or those of every verb in a group, at any depth.
  static func leaves(of words: [String]) -> [[String]] {
    let inner = verbs(of: words)
    return inner.isEmpty ? [words] : inner.flatMap { leaves(of: words + [$0]) }
  }
}
