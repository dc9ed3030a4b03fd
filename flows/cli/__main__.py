"""`python -m flows.cli`: the command without an installation."""

try:
    from flows.cli import main

    main()
except KeyboardInterrupt:  # while modules were imported: nothing was begun
    raise SystemExit(130) from None
