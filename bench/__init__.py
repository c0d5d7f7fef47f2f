"""How fast Lockgate is, always beside something else that ran in the same minute."""
