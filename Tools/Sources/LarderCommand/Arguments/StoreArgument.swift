import ArgumentParser

/// The store that a verb is about.
struct StoreArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp("The store, like json:users.json: a scheme, a colon and a place. No character needs an escape."))
  var url: String
  @OptionGroup var opening: OpeningOptions

  /// What the verb needs to open it.
  var target: StoreTarget { opening.target(url) }
}
